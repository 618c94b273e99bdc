"""What labels mean on each scale."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from preprocessing.reading.records import BAD_LABEL, OTHER_SCALE

SCALES = ("stars", "zero_one", "one_two")
WORDS = "words"  # no number among the labels, so none is understood
NEUTRAL = -1
ON_A_SCALE = range(6)
"""Every number that a scale has."""

_WHOLE_NUMBER = re.compile(r"\s*([0-9])(?:\.0*)?\s*", re.ASCII)
_PREFIX = "__label__"
_PREFIXED = {"1": 0, "2": 1}
_WORDS = {"negative": 0, "neg": 0, "positive": 1, "pos": 1, "neutral": NEUTRAL}
_NUMBERS = {
    "stars": {1: 0, 2: 0, 3: NEUTRAL, 4: 1, 5: 1},
    "zero_one": {0: 0, 1: 1},
    "one_two": {1: 0, 2: 1},
    WORDS: {},
}
_NEUTRAL_AS = {"leave_out": NEUTRAL, "negative": 0, "positive": 1}


class LabelReader:
    """Reads labels on one scale: stars (1-2, 3, 4-5), zero_one, one_two, or words only.

    `positive`, `negative`, `pos`, `neg`, `neutral` and fastText's `__label__1`, `__label__2`
    are understood on every scale. `neutral` is as in `ReadOptions`. `guessed` says that the scale
    was found by looking at labels, so that a number it does not have puts it into question.
    """

    def __init__(self, scale: str, neutral: str, guessed: bool = False) -> None:
        as_label = {NEUTRAL: _NEUTRAL_AS[neutral], 0: 0, 1: 1}
        self._numbers = {number: as_label[label] for number, label in _NUMBERS[scale].items()}
        self._words = {word: as_label[label] for word, label in _WORDS.items()}
        self._truths = scale == "zero_one"
        self._guessed = guessed

    def read(self, value: object) -> int | None:
        """0 negative, 1 positive, `NEUTRAL` to be left out; None when it is no label."""
        number = whole_number(value, self._truths)
        if number is not None:
            return self._numbers.get(number)
        if not isinstance(value, str):
            return None
        word = value.strip().lower()
        if word.startswith(_PREFIX):
            word = word[len(_PREFIX) :]
            if word in _PREFIXED:
                return _PREFIXED[word]
        return self._words.get(word)

    def reason(self, value: object) -> str:
        """Return why a value that `read` does not understand is rejected."""
        contradicts = self._guessed and whole_number(value) in ON_A_SCALE
        return OTHER_SCALE if contradicts else BAD_LABEL


def whole_number(value: object, truths: bool = True) -> int | None:
    """`4`, `4.0`, `"4"` and `"4.0"` as 4, and with `truths` True as 1; None for the rest."""
    if isinstance(value, str):
        match = _WHOLE_NUMBER.fullmatch(value)
        return int(match[1]) if match else None
    if isinstance(value, bool):
        return int(value) if truths else None
    if isinstance(value, int):
        return value
    if not isinstance(value, (float, Decimal)) or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else None
