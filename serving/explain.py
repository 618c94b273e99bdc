"""The effect of each word of a text on its prediction, for any model: the word is left out.

The effect of a word is the logit of the text's probability of one class, minus that of the text
without the word. A positive effect means that the word makes this class more probable. The sum of
the effects has no meaning, because the effect of a word depends on the other words. The method is
that of Li, Monroe and Jurafsky, "Understanding Neural Networks through Representation Erasure"
(2016).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from preprocessing.scripts import SYLLABLE

MAX_WORDS = 100
"""The greatest number of words that are left out. These are the first words of the review."""
_WORD = re.compile(rf"{SYLLABLE}|(?:(?!{SYLLABLE})\S)+")
_SMALLEST = 1e-7
"""Smallest distance of a probability from 0 and 1, about the precision of a float32 near 1."""


class Part(NamedTuple):
    """A word of a review, or the spaces between words. The joined parts are the review.

    Attributes:
      text: the word or the spaces.
      effect: the effect of the word, a difference of logits. It is None for spaces, and for words
        that were not left out.
    """

    text: str
    effect: float | None = None


def variants(text: str, words: int = MAX_WORDS) -> list[bytes]:
    """Return the review in UTF-8, and then for each word the review without this word.

    Args:
      text: the review.
      words: the greatest number of words that are left out, from the beginning of the review.
    """
    spans = list(islice(_WORD.finditer(text), words))
    without = [text[: span.start()] + text[span.end() :] for span in spans]
    return [variant.encode() for variant in (text, *without)]


def parts(text: str, probabilities: Sequence[float]) -> list[Part]:
    """Return the words of a review with their effects, and the spaces between them, in order.

    Args:
      text: the review.
      probabilities: the probability of one class, for each of the `variants` of the review.
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
    """Return the logit of a probability, which is finite also for 0 and 1."""
    bounded = min(max(probability, _SMALLEST), 1 - _SMALLEST)
    return math.log(bounded / (1 - bounded))
