"""The words that contribute to a prediction, for any model: each word is left out once.

The effect of a word is the logit of the review minus the logit of the review without the word. A
positive effect means that the word makes the review more positive. The effects do not add up:
words that depend on each other share theirs. The method is that of Li, Monroe and Jurafsky,
"Understanding Neural Networks through Representation Erasure" (2016).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

MAX_WORDS = 100
"""The greatest number of words that are left out; they are the first words of the review."""
_WORD = re.compile(r"\S+")
_SMALLEST = 1e-7
"""Least distance of a probability from 0 and 1, about the precision of a float32 near 1."""


class Part(NamedTuple):
    """A word of a review, or the spaces between words. All parts, joined, are the review."""

    text: str
    effect: float | None = None
    """The effect of the word, a difference of logits; None for spaces, and for words that were not
    left out."""


def variants(text: str, words: int = MAX_WORDS) -> list[bytes]:
    """Return the review, and then the review without one of its words, for each word, in UTF-8.

    Args:
      text: the review.
      words: the number of words, from the beginning, that are left out.
    """
    spans = list(_WORD.finditer(text))[:words]
    without = [text[: span.start()] + text[span.end() :] for span in spans]
    return [variant.encode() for variant in (text, *without)]


def parts(text: str, probabilities: Sequence[float]) -> list[Part]:
    """Return the words of a review with their effects, and the spaces between them, in order.

    Args:
      text: the review.
      probabilities: the probability of being positive of each of its `variants`.
    """
    whole, *without = map(logit, probabilities)
    found: list[Part] = []
    end = 0
    for span, rest in zip(_WORD.finditer(text), without, strict=False):
        if span.start() > end:
            found.append(Part(text[end : span.start()]))
        found.append(Part(span[0], round(whole - rest, 4)))
        end = span.end()
    if end < len(text):
        found.append(Part(text[end:]))
    return found


def logit(probability: float) -> float:
    """Return the logit of a probability, bounded at the precision of a float32."""
    bounded = min(max(probability, _SMALLEST), 1 - _SMALLEST)
    return math.log(bounded / (1 - bounded))
