"""The meaning of labels on each scale."""

from __future__ import annotations

import json
import re
import struct
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal, InvalidOperation
from typing import cast
from uuid import UUID

from preprocessing.reading.columns import STAR_COLUMNS, Layout
from preprocessing.reading.ratings import stars_of_five
from preprocessing.reading.records import (
    BAD_LABEL,
    INVALID_UTF8,
    OTHER_SCALE,
    ReadOptions,
    is_missing,
    printable,
    text_problem,
)
from preprocessing.reading.values import INVISIBLE, as_text

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
NO_LABEL = "-1"
"""The number of a missing label in Hugging Face's `datasets`."""
NUMBERS = [str(number) for number in range(-1, 6)]
"""The numbers on any of the scales."""
KNOWN_WORDS = {
    "negative": 0,
    "neg": 0,
    "positive": 1,
    "pos": 1,
    "neutral": NEUTRAL,
    "neu": NEUTRAL,
}
"""The words with a meaning on every scale."""
YAML_WORDS = {True: ("true", "yes", "on"), False: ("false", "no", "off")}
"""Boolean -> the labels in settings that YAML reads as it."""

_SPELLINGS = 20_000
"""The maximum number of spellings of known labels whose meaning is cached."""
_LONGEST = 10_000
"""The maximum number of characters of a label. A longer one is a text."""
_PREFIX = "__label__"
_LIMIT = 1 << 64
"""Integers and decimal numbers of this size or larger are not labels. Python cannot convert all of
them to text."""
_FLOAT_LIMIT = 10**18
"""Floats of this size or larger are not labels, because their last digits are not those of the
file."""
_NUMBER = re.compile(
    r"(?:\+(?=[0-9]))?(-?[0-9]+)(?:\.0*|,(?!000\b)0*)?(?: out of 5 stars)?",
    re.ASCII | re.IGNORECASE,
)
"""An integer, also as a decimal number. A comma before three zeros may separate thousands."""
_POWER = re.compile(r"[-+]?[0-9]\.?[0-9]*e[-+][0-9]{2}", re.ASCII | re.IGNORECASE)
"""A number as NumPy and R write it, such as `5.00e+00`."""
_DECIMAL_COMMA = re.compile(r"^(-?[0-9]+),([0-9]{1,2})$", re.ASCII)


class CollectedLabels:
    """The labels of files whose classes are not known yet.

    Attributes:
      names: label as `label_name` returns it -> its number, in the order of the first lines.
    """

    MAX = 10_000
    """The largest number of classes. More labels are ids or texts."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}

    @property
    def are_too_many(self) -> bool:
        """Whether there are more labels than classes are possible."""
        return len(self.names) > self.MAX

    def number(self, label: str) -> int:
        """Return the number of a label. A new label gets the next number."""
        return self.names.setdefault(label, len(self.names))


class LabelReader:
    """A reader of the labels of a file; if labels are not read, every value is valid.

    Args:
      layout: the layout of the file.
      column: the column of the labels; None: that of the layout.
    """

    def __init__(self, layout: Layout, column: str | None = None) -> None:
        scale, guessed = label_scale(layout, column)
        meanings = layout.label_map or {**SCALES[scale], **KNOWN_WORDS}
        self._collected = layout.collected
        self._label_map = layout.label_map
        self._meanings: dict[str, int] = {
            label: NEUTRAL if meaning is None else meaning
            for label, meaning in meanings.items()
            if self._collected is None
        }
        is_own_column = column is None or layout.columns is None or column == layout.columns.label
        self._class_names = layout.class_names if is_own_column else ()
        self._has_scale = self._collected is None and not layout.label_map
        # Equal numbers have equal hashes, so 4.0 is found as 4.
        self._numbers = {
            int(label): meaning
            for label, meaning in self._meanings.items()
            if _is_integer(label) and not self._class_names
        }
        # Not in `_meanings`: a spelling may be the name of another label.
        self._spellings: dict[str, int] = {}
        self._most = len(self._meanings) + len(self._numbers) + _SPELLINGS
        self._guessed = guessed and not layout.label_map
        self._missing = layout.missing
        self._reads_labels = layout.reads_labels
        self._keeps_case = layout.keeps_case

    def read(self, value: object) -> int | None:
        """Return the meaning of a label.

        Args:
          value: the value of the field, of any type.

        Returns:
          The index of the class, or `NEUTRAL`; None if the value is not a label. While labels are
          collected, it is the number of the label in `CollectedLabels`.
        """
        if not self._reads_labels:
            return 0
        if isinstance(value, str):
            found = self._spellings.get(value)
        elif type(value) in (int, float):  # not a bool, which also equals a number
            found = self._numbers.get(cast(int, value))
        else:
            found = None
        return self._find(value) if found is None else found

    def _find(self, value: object) -> int | None:
        """Return the result of `read` for a value that is not cached, and cache it."""
        named = named_class(value, self._class_names)
        if self._collected is not None:
            found = self._collect(named)
        else:
            found = self._meanings.get(self._label(named) or "")
        # A file has few spellings of its labels, and `label_name` takes a microsecond.
        if found is None or len(self._spellings) + len(self._numbers) >= self._most:
            return found
        if isinstance(value, str):
            self._spellings[value] = found
        elif type(value) is int:
            self._numbers[value] = found
        return found

    def _label(self, value: object) -> str | None:
        if self._has_scale:
            return scale_label(value)
        return label_name(value) if self._keeps_case else canonical(value)

    def _collect(self, value: object) -> int | None:
        label = label_name(value)
        if not label or is_missing(label, self._label_map) or text_problem(label):
            return None
        return cast(int, self._collected.number(label))

    def reason(self, value: object) -> str:
        """Return the reason to reject a value that is not a label, a constant of `records`."""
        if isinstance(value, str) and text_problem(value):
            return INVALID_UTF8
        is_number = scale_label(value) in NUMBERS and not self.is_number_of_none(value)
        return OTHER_SCALE if self._guessed and is_number else BAD_LABEL

    def is_number_of_none(self, value: object) -> bool:
        """Return whether a value is the number that marks a missing label in this input."""
        return bool(self._missing) and scale_label(value) == self._missing


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


def numbers_of(scale: str) -> set[str]:
    """Return the numbers on a scale; none for a name that is not one of SCALES."""
    return {label for label in SCALES.get(scale, {}) if label in NUMBERS}


def two_scales(found: str, served: str) -> str:
    """Return the end of a message about labels that fit two scales with different meanings.

    Args:
      found: the scale that was detected from the labels.
      served: the scale of the served model.
    """
    return (
        f"the labels are read as the scale {found}, and the served model was trained with the "
        f"scale {served}, which they fit too: set data.labels={_scale_setting(served)} for "
        f"{served}, data.labels={_scale_setting(found)} for {found}, or paths.serving to another "
        "folder"
    )


def _scale_setting(scale: str) -> str:
    """Return the value of `data.labels` with the meanings of a scale."""
    return as_setting({label: SCALES[scale][label] for label in sorted(numbers_of(scale), key=int)})


def as_setting(meanings: Mapping[str, int]) -> str:
    """Return the value of `data.labels` for labels with these meanings.

    Args:
      meanings: label -> 0, 1 or NEUTRAL.
    """
    pairs = (
        f"{setting_key(label)}: {'null' if meaning == NEUTRAL else meaning}"
        for label, meaning in meanings.items()
    )
    return f"{{{', '.join(pairs)}}}"


def setting_key(label: str) -> str:
    """Return a label as a key of `data.labels`; in quotes if it would be read as another label.

    Args:
      label: the label, as `label_name` or `canonical` returns it.
    """
    import yaml

    from core.overrides import load_yaml

    try:
        keys = list(load_yaml(f"{{{label}: 0}}"))
    except yaml.YAMLError:
        keys = []
    if keys:
        read = YAML_WORDS[keys[0]] if isinstance(keys[0], bool) else (label_name(keys[0]),)
        if len(keys) == 1 and label in read and label.isprintable():
            return label
    return printable(json.dumps(label, ensure_ascii=False))


def _is_integer(label: str) -> bool:
    """Return whether a label is how `label_name` writes an integer, unlike `04`."""
    digits = label.removeprefix("-")
    is_number = label.isascii() and digits.isdecimal() and len(digits) <= len(str(_LIMIT))
    return is_number and str(int(label)) == label


def canonical(value: object) -> str | None:
    """Return a label in the spelling of `SCALES`; None for a value that is not a label.

    It is `label_name` in lower case.
    """
    label = label_name(value)
    return label and label.lower()


def scale_label(value: object) -> str | None:
    """Return a label as the labels of `SCALES` are written; None for a value that is not a label.

    It is the number of stars of a rating of at most five stars, such as `4 von 5 Sternen`, and
    otherwise the label as `canonical` returns it. Names of classes remain the text in the files.
    """
    label = canonical(value)
    stars = stars_of_five(label) if label else None
    return label if stars is None else stars


def label_name(value: object) -> str | None:
    """Return a label as the name of a class; None for a value that is not a label.

    Letters keep their case. `4`, `" 4.0"`, `"4,0"`, `"+4"`, `"4.00e+00"`, `"4.0 out of 5 stars"`
    and `"__label__4"` become `4`, and True, `"True"` and `"TRUE"` become `true`. A text is in the
    normal form NFC of Unicode, without the white space and the characters of `values.INVISIBLE`
    around it. A date is `values.as_text` of it.
    """
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            return None
    if isinstance(value, str):
        return _text_name(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:d}" if abs(value) < _LIMIT else None
    # NaN, infinity and numbers that are too large for a label are not less than the limit.
    if isinstance(value, float) and abs(value) < _FLOAT_LIMIT:
        return f"{int(value):d}" if value == int(value) else _shortest(value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < _LIMIT:
        return f"{int(value):d}" if value == int(value) else f"{value.normalize():f}"
    return as_text(value) if isinstance(value, (date, time, UUID)) else None


def _text_name(text: str) -> str | None:
    if len(text) > _LONGEST:
        return None
    name = _stripped(text)
    # The name of a label is a spelling of the same label, so a repeated prefix is no part of it.
    while name[: len(_PREFIX)].lower() == _PREFIX:
        name = _stripped(name[len(_PREFIX) :])
    number = _NUMBER.fullmatch(name)
    if number:
        return number[1]
    if _POWER.fullmatch(name):
        return label_name(float(name))
    lower = name.lower()
    if lower in ("true", "false"):
        return lower
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _stripped(text: str) -> str:
    """Return a text without the white space and the characters of INVISIBLE around it."""
    name = text.strip()
    while not name.isascii() and name.strip(INVISIBLE) != name:
        name = name.strip(INVISIBLE).strip()
    return name


def _shortest(value: float) -> str:
    """Return the digits of a number; those of a float32, which Parquet files contain, if it is one.

    So 0.1 has the same name in 32 and in 64 bits.
    """
    short = f"{value:g}"
    single = struct.pack("f", value) if abs(value) < 1e38 else b""
    return short if single and struct.pack("f", float(short)) == single else repr(value)


def as_number(label: str) -> Decimal | None:
    """Return a label in the spelling of `canonical` as a number; None if it is none."""
    try:
        number = Decimal(label)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def same_numbers(labels: Iterable[str]) -> list[list[str]]:
    """Return the groups of different labels that are the same number, such as `2.5` and `2.50`.

    Args:
      labels: labels as `label_name` or `canonical` returns them. A comma before one or two digits
        is that of a decimal number.
    """
    by_number: dict[Decimal, list[str]] = {}
    for label in labels:
        number = as_number(_DECIMAL_COMMA.sub(r"\1.\2", label))
        if number is not None:
            by_number.setdefault(number, []).append(label)
    return [alike for alike in by_number.values() if len(alike) > 1]


def named_class(value: object, names: Sequence[str]) -> object:
    """Return the name of a class if the value is its number, and None for a number without a name.

    Any other value, and every value if no class has a name, is returned as it is.

    Args:
      value: the value of the field.
      names: the names of the numbers 0, 1, ..., see `Layout.class_names`.
    """
    if not names or type(value) is not int:
        return value
    return names[value] if 0 <= value < len(names) else None


def are_sentiments(names: Iterable[str]) -> bool:
    """Return whether all names of classes are KNOWN_WORDS, at least one of each sentiment."""
    found = {canonical(name) or "" for name in names}
    return found <= KNOWN_WORDS.keys() and {0, 1} <= {KNOWN_WORDS[name] for name in found}


def numbers_with_names(names: Sequence[str]) -> dict[str, int]:
    """Return number -> the meaning of its name, 0, 1 or NEUTRAL.

    Args:
      names: the names of the numbers 0, 1, ..., for which `are_sentiments` is true.
    """
    return {str(number): KNOWN_WORDS[canonical(name) or ""] for number, name in enumerate(names)}


def labels_among(values: Iterable[object]) -> Iterator[str]:
    """Yield the labels among values as `scale_label` returns them; for a boolean both 0 and 1."""
    for value in values:
        label = scale_label(value)
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
    return scale_label(field) in known or canonical(field) in known
