"""Changes of reviews for `benchmarks.drift`."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial

_NOT = re.compile(
    r"\b(is|was|are|were|do|does|did|has|have|would|could|should)(?:( not\b)|(n't\b))?", re.I
)
_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxz", "aeiouy"


def _replace_words(texts: list[bytes], share: float) -> list[bytes]:
    """Replace a share of all words by words of other reviews, as frequent as there."""
    drawn = random.Random(0)
    words = [word for text in texts[:3000] for word in text.split()]
    return [
        b" ".join(drawn.choice(words) if drawn.random() < share else word for word in text.split())
        for text in texts
    ]


def _flip_negations(texts: list[bytes]) -> list[bytes]:
    """Negate what is not negated, such as `is`, and the other way round, once in each review."""

    def flipped(found: re.Match[str]) -> str:
        return found[1] if found[2] or found[3] else f"{found[1]} not"

    return [_NOT.sub(flipped, text.decode(), count=1).encode() for text in texts]


def _translate(texts: list[bytes]) -> list[bytes]:
    """Replace each letter by the next consonant or vowel, as in a language without known words."""
    table = {
        case(letter): case(letters[(n + 1) % len(letters)])
        for letters in (_CONSONANTS, _VOWELS)
        for n, letter in enumerate(letters)
        for case in (str.lower, str.upper)
    }
    mapping = str.maketrans(table)
    return [text.decode().translate(mapping).encode() for text in texts]


CHANGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a negation flipped": _flip_negations,
    "1 % of words replaced": partial(_replace_words, share=0.01),
    "5 % of words replaced": partial(_replace_words, share=0.05),
    "an unknown language": _translate,
}
"""Name of a change -> a function from texts to changed texts."""
