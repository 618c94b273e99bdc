"""The meaning of labels on each scale."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal

from preprocessing.reading.columns import Layout
from preprocessing.reading.records import BAD_LABEL, OTHER_SCALE, ReadOptions

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
NUMBERS = [str(number) for number in range(-1, 6)]
"""The numbers on any of the scales."""
KNOWN_WORDS = {"negative": 0, "neg": 0, "positive": 1, "pos": 1, "neutral": NEUTRAL}
"""The words with a meaning on every scale."""

_PREFIX = "__label__"
_LIMIT = 10**18
"""Numbers from here on are no labels. Python cannot convert each of them to a float or to text."""
_NUMBER = re.compile(r"(-?[0-9]+)(?:[.,]0*)?(?: out of 5 stars)?", re.ASCII)


class LabelReader:
    """A reader of the labels of files with this layout; without labels, all values are valid."""

    def __init__(self, layout: Layout) -> None:
        meanings = layout.label_map or {**SCALES[layout.label_scale], **KNOWN_WORDS}
        self._meanings = {
            label: NEUTRAL if meaning is None else meaning for label, meaning in meanings.items()
        }
        self._guessed = layout.scale_is_guessed
        self._optional = layout.labels == "optional"

    def read(self, value: object) -> int | None:
        """Return 0 (negative), 1 (positive), `NEUTRAL` (leave out) or None (not a label)."""
        if self._optional:
            return 0
        found = self._meanings.get(value) if isinstance(value, str) else None
        return self._meanings.get(canonical(value) or "") if found is None else found

    def reason(self, value: object) -> str:
        """Return why a value for which `read` returns None is rejected."""
        return OTHER_SCALE if self._guessed and canonical(value) in NUMBERS else BAD_LABEL


def canonical(value: object) -> str | None:
    """Return a label in the spelling of `SCALES`; None for a value that is no label.

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
    # NaN and infinity are not less than the limit, nor is a number that no label can be.
    if isinstance(value, (int, float)) and abs(value) < _LIMIT:
        return f"{int(value):d}" if value == int(value) else f"{value:g}"
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < _LIMIT:
        return f"{int(value):d}" if value == int(value) else f"{value:g}"
    return None


def labels_among(values: Iterable[object]) -> Iterator[str]:
    """Yield the labels among values, as `canonical` returns them; for a boolean 0 and 1."""
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
    """Return whether a field is a label on one of the scales, or one that is set."""
    known = (*NUMBERS, "true", "false", *KNOWN_WORDS, *options.label_map)
    return canonical(field) in known
