"""JSON lines: one object on each line. A missing or null title or text is empty."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from preprocessing.reading.columns import Layout
from preprocessing.reading.formats import RowReader
from preprocessing.reading.pieces import Lines, Lost, without_marks
from preprocessing.reading.records import (
    BROKEN_JSON,
    INVALID_UTF8,
    NO_TEXT,
    Batch,
    Rejected,
    printable,
    rejected,
)


def make_parser(layout: Layout) -> Callable[[Lines], Batch]:
    """Return the function that parses the lines of a file with this layout."""
    reader = RowReader(layout)
    names = reader.names

    def parse(lines: Lines) -> Batch:
        batch = Batch()
        data = without_marks(lines.data)
        for position, line in enumerate(data.split(b"\n"), lines.first):
            fields = parse_object(position, line.removesuffix(b"\r"))
            if isinstance(fields, Lost):
                batch.rejected.append(fields.record)
                batch.lost += fields.bytes
                continue
            if isinstance(fields, Rejected):
                batch.rejected.append(fields)
                continue
            values = [fields.get(name) if name else None for name in names]
            if not reader.add_usual(batch, position, values, fields):
                reader.add(batch, position, fields)
        return batch

    return parse


def parse_object(position: int, line: bytes) -> dict[str, Any] | Rejected | Lost:
    """Return the JSON object on a line, or the reason why the line is rejected.

    The bytes of a line with several objects are lost, because it contains several records.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return rejected(position, INVALID_UTF8, line[error.start :])
    if not text or text.isspace():
        return rejected(position, NO_TEXT, "a blank line")
    try:
        value = json.loads(text)
    # A number with thousands of digits raises a ValueError, thousands of brackets a RecursionError.
    except (ValueError, RecursionError) as error:
        if _is_followed(error, text):
            several = f"several objects on a line: {text[:200]}"
            return Lost(rejected(position, BROKEN_JSON, several), len(line))
        return rejected(position, BROKEN_JSON, f"{printable(str(error))[:80]}: {text[:200]}")
    if not isinstance(value, dict):
        return rejected(position, BROKEN_JSON, "not an object: " + text[:200])
    return value


def _is_followed(error: Exception, text: str) -> bool:
    """Return whether an object begins behind the value at which the parser stopped.

    Files that were joined without a line break have such lines, and so have parts of joined files
    whose lines end with CR alone.
    """
    if not isinstance(error, json.JSONDecodeError) or error.msg != "Extra data":
        return False
    return text[error.pos :].lstrip(", \t\r").startswith("{")
