"""The values in the fields of JSON lines and Parquet: their text, and what has no text.

A field of a CSV file is always a text.
"""

from __future__ import annotations

import json
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

INVISIBLE = (
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2061\u2062\u2063\u2064"
    "\u2066\u2067\u2068\u2069\ufeff"
)
"""Characters without a shape, such as the zero-width space, direction marks and byte order marks.
The invisible parts of an emoji are not among them."""
_PLAIN = (int, float, Decimal, date, time, UUID)
"""The types whose `str` is their text, such as `2.5`, `2026-11-29` and `2026-11-29 08:30:00`."""


def as_text(value: Any) -> str | None:
    """Return the value of a field as text: empty if it is missing, None for one of `kind`.

    A date is written as `2026-11-29`, a timestamp as `2026-11-29 08:30:00`, with a fraction of a
    second and the offset from UTC if it has them. Bytes that are not UTF-8, such as those of a
    UUID, become hexadecimal digits.
    """
    if _is_nothing(value):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, bytes):
        return _bytes_as_text(value)
    return str(value) if isinstance(value, _PLAIN) else None


def kind(value: Any) -> str | None:
    """Return what a value is that is neither a label nor a text: `a list`, `an object` ...

    It is None for a text, a number, a boolean, bytes, a date, a time and a missing value.
    """
    if as_text(value) is not None:
        return None
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, dict):
        return "an object"
    return "a duration" if isinstance(value, timedelta) else f"a {type(value).__name__}"


def shown(value: Any) -> str:
    """Return any value as text for a message; lists, objects and missing values as JSON.

    Args:
      value: the value of a field.
    """
    try:
        if _is_nothing(value) or isinstance(value, (list, tuple, dict)):
            return json.dumps(value, ensure_ascii=False, default=_part)
        return _part(value)
    except (ValueError, TypeError, RecursionError):
        # Python refuses to convert a number of thousands of digits to text.
        return f"a value of the type {type(value).__name__}"


def _is_nothing(value: Any) -> bool:
    """Return whether a value is None or NaN, as which pandas reads a missing value."""
    return value is None or (isinstance(value, float) and value != value)


def _part(value: Any) -> str:
    text = as_text(value)
    return str(value) if text is None else text


def is_filled(value: Any) -> bool:
    """Return whether a field has a value: not None, NaN, a blank string, or an empty collection."""
    if value is None:
        return False
    if isinstance(value, (str, bytes)):
        return bool(value) and not value.isspace()
    if isinstance(value, (dict, list)):
        return bool(value)
    return bool(value == value)


def is_blank(text: str) -> bool:
    """Return whether a text has nothing to see: only white space and characters of INVISIBLE."""
    return all(char.isspace() or char in INVISIBLE for char in text)


def column_problem(path: str, role: str, name: str, what: str) -> str:
    """Return the message about a column whose values are neither labels nor texts.

    Args:
      path: the file.
      role: `label`, `title` or `text`.
      name: the name of the column.
      what: what each value is, with an example or its type.
    """
    needs = "neither a text nor a number" if role == "label" else "no text"
    other = "another column or null" if role == "title" else "another column"
    return (
        f"{path}: the {role} in each record, the column `{name}`, is {what}, which is {needs}: set "
        f"data.columns.{role} to {other}, or write one text into each field, as pandas' "
        "`explode` does with lists and `json_normalize` with objects"
    )


def _bytes_as_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.hex()
