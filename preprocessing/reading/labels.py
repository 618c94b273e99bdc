"""The meaning of labels on each scale."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from preprocessing.reading.columns import Layout
from preprocessing.reading.records import BAD_LABEL, OTHER_SCALE, ReadOptions

TWO_NUMBERS = ("zero_one", "one_two")
"""The scales without a neutral number."""
SCALES = ("stars", *TWO_NUMBERS)
WORDS = "words"  # the scale of files without numbers among their labels; it has no number
NEUTRAL = -1
SCALE_NUMBERS = range(6)
"""The numbers that occur on any of the scales."""

_PREFIX = "__label__"
_WHOLE_NUMBER = re.compile(rf"\s*(?:{_PREFIX})?([0-9])(?:\.0*)?\s*", re.ASCII)
_WORDS = {"negative": 0, "neg": 0, "positive": 1, "pos": 1, "neutral": NEUTRAL}
_NUMBERS = {
    "stars": {1: 0, 2: 0, 3: NEUTRAL, 4: 1, 5: 1},
    "zero_one": {0: 0, 1: 1},
    "one_two": {1: 0, 2: 1},
    WORDS: {},
}
_NEUTRAL_AS = {"leave_out": NEUTRAL, "negative": 0, "positive": 1}


class LabelReader:
    """A reader of labels on one scale: stars (1-2, 3, 4-5), zero_one, one_two, or words only.

    The words `positive`, `negative`, `pos`, `neg` and `neutral` are valid on every scale. A
    number or word may have fastText's prefix `__label__`.

    Args:
      scale: one of SCALES, or WORDS.
      neutral: the treatment of neutral labels, see `ReadOptions`.
      guessed: whether the scale was inferred from some labels. If it was, the reason for a number
        that is only on other scales is OTHER_SCALE.
    """

    def __init__(self, scale: str, neutral: str, guessed: bool = False) -> None:
        as_label = {NEUTRAL: _NEUTRAL_AS[neutral], 0: 0, 1: 1}
        self._numbers = {number: as_label[label] for number, label in _NUMBERS[scale].items()}
        self._words = {word: as_label[label] for word, label in _WORDS.items()}
        self._booleans = scale == "zero_one"
        self._guessed = guessed

    def read(self, value: object) -> int | None:
        """Return 0 (negative), 1 (positive), `NEUTRAL` (leave out) or None (not a label)."""
        number = whole_number(value, self._booleans)
        if number is not None:
            return self._numbers.get(number)
        if not isinstance(value, str):
            return None
        return self._words.get(_word(value))

    def reason(self, value: object) -> str:
        """Return why a value for which `read` returns None is rejected."""
        contradicts = self._guessed and whole_number(value) in SCALE_NUMBERS
        return OTHER_SCALE if contradicts else BAD_LABEL


class AnyLabel(LabelReader):
    """A reader for input whose labels are not used: every value is valid, even a missing one."""

    def __init__(self) -> None:
        super().__init__(WORDS, "leave_out")

    def read(self, value: object) -> int:
        """Return 0, which no other code reads."""
        return 0


def label_reader(layout: Layout) -> LabelReader:
    """Return the reader of the labels of files with this layout."""
    if layout.labels == "optional":
        return AnyLabel()
    return LabelReader(layout.label_scale, layout.neutral, layout.scale_is_guessed)


def numbers_among(labels: Iterable[object]) -> Iterator[int]:
    """Yield the SCALE_NUMBERS among labels, and NEUTRAL for the word `neutral`."""
    for label in labels:
        if isinstance(label, bytes):
            label = label.decode("utf-8", "replace")
        if isinstance(label, bool):
            yield from (0, 1)  # one boolean shows that the labels are booleans
        elif isinstance(label, str) and _WORDS.get(_word(label)) == NEUTRAL:
            yield NEUTRAL
        number = whole_number(label)
        if number is not None and number in SCALE_NUMBERS:
            yield number


def _word(value: str) -> str:
    return value.strip().lower().removeprefix(_PREFIX)


def whole_number(value: object, booleans: bool = True) -> int | None:
    """Return `4`, `4.0`, `"4"`, `"4.0"`, `"__label__4"` as 4; with `booleans`, True as 1.

    Other values are None.
    """
    if isinstance(value, str):
        match = _WHOLE_NUMBER.fullmatch(value)
        return int(match[1]) if match else None
    if isinstance(value, bool):
        return int(value) if booleans else None
    if isinstance(value, int):
        return value
    if not isinstance(value, (float, Decimal)) or not math.isfinite(value):
        return None
    return int(value) if value == int(value) else None


def is_headerless(fields: list[str], options: ReadOptions) -> bool:
    """Return whether a record of a CSV file is a review: a label, an optional title, a text."""
    if len(fields) not in (2, 3):
        return False
    is_missing = options.labels == "optional" and not fields[0].strip()
    is_number = whole_number(fields[0]) in range(6)
    return (
        is_missing or is_number or LabelReader("one_two", "leave_out").read(fields[0]) is not None
    )
