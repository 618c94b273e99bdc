"""The contribution of each word of a review to its prediction."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from serving.predictor import Prediction

MOST_WORDS = 200
"""The maximum number of words of a review that are explained; it bounds the size of the batch."""
_SMALLEST = 1e-7
"""The logit of a probability of 0 or 1 is infinite; float32 rounds to them."""


class Word(NamedTuple):
    """A word of a review.

    Attributes:
      start, end: its place in the text, in characters.
      contribution: the logit of the review minus the logit without the word. A positive value means
        that the word makes the review more positive.
    """

    start: int
    end: int
    contribution: float


def explain(
    text: str, predict: Callable[[Sequence[str | bytes]], Sequence[Prediction]]
) -> tuple[Prediction, list[Word]]:
    """Return the prediction for a review and the contribution of its first words.

    The method is leave-one-out: each word is removed in turn and the rest is predicted, in one
    batch. It needs nothing of the model but its predictions (Li, Monroe and Jurafsky,
    "Understanding Neural Networks through Representation Erasure", 2016).
    """
    places = [match.span() for match in re.finditer(r"\S+", text)][:MOST_WORDS]
    whole, *without = predict([text, *(text[:start] + text[end:] for start, end in places)])
    words = [
        Word(start, end, _logit(whole.probability) - _logit(rest.probability))
        for (start, end), rest in zip(places, without, strict=True)
    ]
    return whole, words


def _logit(probability: float) -> float:
    bounded = min(max(probability, _SMALLEST), 1 - _SMALLEST)
    return math.log(bounded / (1 - bounded))
