"""The meaning of labels on each scale."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import cast

from core.errors import InputError
from preprocessing.reading.columns import STAR_COLUMNS, Layout
from preprocessing.reading.records import (
    BAD_LABEL,
    OTHER_SCALE,
    ReadOptions,
    is_missing,
    printable,
)

NEUTRAL = -1
SCALES: dict[str, dict[str, int]] = {
    "1 to 5": {"1": 0, "2": 0, "3": NEUTRAL, "4": 1, "5": 1},
    "0 to 4": {"0": 0, "1": 0, "2": NEUTRAL, "3": 1, "4": 1},
    "0 and 1": {"0": 0, "1": 1, "false": 0, "true": 1},
    "1 and 2": {"1": 0, "2": 1},
    "-1 to 1": {"-1": 0, "0": NEUTRAL, "1": 1},
    "words": {},
}
"""Scale -> label -> its meaning: 0 negative, 1 positive, NEUTRAL left out."""
STARS, WORDS = "1 to 5", "words"
STAR_SCALES = (STARS, "0 to 4")
"""The scales whose values may be the classes of `data.labels: stars`."""
NUMBERS = [str(number) for number in range(-1, 6)]
"""The numbers on any of the scales."""
KNOWN_WORDS = {"negative": 0, "neg": 0, "positive": 1, "pos": 1, "neutral": NEUTRAL}
"""The words with a meaning on every scale."""

_SPELLINGS = 1_000
"""The maximum number of spellings of labels whose meaning is cached."""
_PREFIX = "__label__"
_LIMIT = 10**18
"""Numbers of this size or larger are not labels. Python cannot convert all of them to a float or to
text."""
_NUMBER = re.compile(r"(-?[0-9]+)(?:[.,]0*)?(?: out of 5 stars)?", re.ASCII)


class CollectedLabels:
    """The labels of files whose classes are not known yet, with the number of each spelling.

    Attributes:
      found: label in the spelling of `canonical` -> spelling in the files -> number of its lines.
    """

    MAX = 10_000
    """The largest number of classes. More labels are ids or texts."""

    def __init__(self) -> None:
        self.found: dict[str, Counter[str]] = {}

    def add(self, value: object) -> bool:
        """Count the label of a line; return whether the value is a label.

        Raises:
          InputError: there are more than MAX different labels.
        """
        label = canonical(value)
        if not label or is_missing(value, {}):
            return False
        if label not in self.found:
            if len(self.found) > self.MAX:
                raise InputError(
                    f"data.labels: each found more than {self.MAX:,} labels, such as "
                    f"{printable(label)[:40]}; these are ids or texts, set data.columns.label to "
                    "another column"
                )
            self.found[label] = Counter()
        is_text = isinstance(value, str) and as_number(label) is None
        spelling = str(value).strip().removeprefix(_PREFIX) if is_text else label
        self.found[label][spelling] += 1
        return True


class LabelReader:
    """A reader of the labels of a file; if labels are optional, every value is valid.

    Args:
      layout: the layout of the file.
      column: the column of the labels; None: that of the layout.
    """

    def __init__(self, layout: Layout, column: str | None = None) -> None:
        scale, guessed = label_scale(layout, column)
        meanings = layout.label_map or {**SCALES[scale], **KNOWN_WORDS}
        self._meanings: dict[str, int] = {
            label: NEUTRAL if meaning is None else meaning for label, meaning in meanings.items()
        }
        # Equal numbers have equal hashes, so 4.0 is found as 4.
        self._numbers = {
            int(label): meaning for label, meaning in self._meanings.items() if _is_integer(label)
        }
        self._guessed = guessed and not layout.label_map
        self._optional = layout.labels == "optional"
        self._collected = layout.collected

    def read(self, value: object) -> int | None:
        """Return the meaning of a label.

        Args:
          value: the value of the field, of any type.

        Returns:
          The index of the class, or `NEUTRAL`; None if the value is not a label. While labels are
          collected, every label has the index 0.
        """
        if self._optional:
            return 0
        if self._collected is not None:
            return 0 if self._collected.add(value) else None
        if isinstance(value, str):
            found = self._meanings.get(value)
        elif type(value) in (int, float):  # not a bool, which also equals a number
            found = self._numbers.get(cast(int, value))
        else:
            found = None
        if found is not None:
            return found
        found = self._meanings.get(canonical(value) or "")
        # A file has few spellings of its labels, and `canonical` takes a microsecond.
        if found is not None and isinstance(value, str) and len(self._meanings) < _SPELLINGS:
            self._meanings[value] = found
        return found

    def reason(self, value: object) -> str:
        """Return the reason to reject a value that is not a label, a constant of `records`."""
        return OTHER_SCALE if self._guessed and canonical(value) in NUMBERS else BAD_LABEL


def has_stars(column: str | None) -> bool:
    """Return whether a column has the name of a rating, and therefore contains 1 to 5 stars."""
    return (column or "").lower() in STAR_COLUMNS


def label_scale(layout: Layout, column: str | None) -> tuple[str, bool]:
    """Return the scale of the labels in a column, and whether it was inferred from some of them.

    Args:
      layout: the layout of the file.
      column: the column; None: that of the layout.
    """
    if column is None or layout.columns is None or column == layout.columns.label:
        return layout.label_scale, layout.scale_is_guessed
    return (STARS, False) if has_stars(column) else (layout.other_scale, True)


def star_classes(scale: str) -> dict[str, int | None]:
    """Return the class of each value of a scale, in ascending order."""
    return {label: index for index, label in enumerate(SCALES[scale])}


def _is_integer(label: str) -> bool:
    return label.isascii() and label.removeprefix("-").isdecimal()


def canonical(value: object) -> str | None:
    """Return a label in the spelling of `SCALES`; None for a value that is not a label.

    `4`, `" 4.0"`, `"4,0"`, `"4.0 out of 5 stars"` and `"__label__4"` become `4`, True becomes
    `true`, and a word is in lower case.
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, str):
        word = value.strip().lower().removeprefix(_PREFIX)
        number = _NUMBER.fullmatch(word)
        return number[1] if number else word
    if isinstance(value, bool):
        return str(value).lower()
    # NaN, infinity and numbers that are too large for a label are not less than the limit.
    if isinstance(value, (int, float)) and abs(value) < _LIMIT:
        return f"{int(value):d}" if value == int(value) else f"{value:g}"
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < _LIMIT:
        return f"{int(value):d}" if value == int(value) else f"{value:g}"
    return None


def as_number(label: str) -> Decimal | None:
    """Return a label in the spelling of `canonical` as a number; None if it is none."""
    try:
        number = Decimal(label)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def labels_among(values: Iterable[object]) -> Iterator[str]:
    """Yield the labels among values in the spelling of `canonical`; for a boolean both 0 and 1."""
    for value in values:
        label = canonical(value)
        if label in ("true", "false"):
            yield from ("0", "1")
        elif label:
            yield label


def is_headerless(fields: list[str], options: ReadOptions) -> bool:
    """Return whether a record of a CSV file is a review: a label, an optional title, a text."""
    if len(fields) not in (2, 3):
        return False
    return is_label(fields[0], options)


def is_label(field: str, options: ReadOptions) -> bool:
    """Return whether a field is a label on one of the scales or in `ReadOptions.label_map`."""
    known = (*NUMBERS, "true", "false", *KNOWN_WORDS, *options.label_map)
    return canonical(field) in known
