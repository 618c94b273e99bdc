"""JSON lines: one object on each line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from preprocessing.reading.columns import HEADERLESS, Columns, Layout
from preprocessing.reading.labels import LabelReader, label_reader
from preprocessing.reading.lines import MAX_LINE_BYTES, TOO_LONG, Lines
from preprocessing.reading.records import (
    BROKEN_JSON,
    INVALID_UTF8,
    LINE_TOO_LONG,
    NO_TEXT,
    Batch,
    Record,
    Rejected,
    as_text,
    further_values,
    make_review,
    printable,
    rejected,
)


def make_parser(layout: Layout) -> Callable[[Lines], Batch]:
    """Return the function that parses the lines of a file with this layout.

    A missing or null title or text is empty.
    """
    columns = layout.columns or HEADERLESS
    labels = label_reader(layout)

    def parse(lines: Lines) -> Batch:
        batch = Batch()
        for position, line in enumerate(lines.data.split(b"\n"), lines.first):
            batch.add(_parse(position, line.removesuffix(b"\r"), columns, labels))
        return batch

    return parse


def parse_object(position: int, line: bytes) -> dict[str, Any] | Rejected:
    """Return the JSON object on a line, or the reason why the line is rejected."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return rejected(position, INVALID_UTF8, line[error.start :])
    if "\0" in text:
        return rejected(position, INVALID_UTF8, "a NUL character")
    if not text or text.isspace():
        return rejected(position, NO_TEXT, "a blank line")
    try:
        value = json.loads(text)
    # A number with thousands of digits raises a ValueError, thousands of brackets a RecursionError.
    except (ValueError, RecursionError) as error:
        return rejected(position, BROKEN_JSON, f"{printable(str(error))[:80]}: {text[:200]}")
    if not isinstance(value, dict):
        return rejected(position, BROKEN_JSON, "not an object: " + text[:200])
    return value


def _parse(position: int, line: bytes, columns: Columns, labels: LabelReader) -> Record:
    if len(line) > MAX_LINE_BYTES:
        return rejected(position, LINE_TOO_LONG, TOO_LONG)
    fields = parse_object(position, line)
    if isinstance(fields, Rejected):
        return fields
    value = fields.get(columns.label) if columns.label else None
    label = labels.read(value)
    if label is None:
        if not any(fields.values()):
            return rejected(position, NO_TEXT, "an empty object")
        shown = f"{columns.label}: {printable(value)}" if columns.label in fields else None
        return rejected(position, labels.reason(value), shown or f"no {columns.label}")
    title = as_text(fields.get(columns.title)) if columns.title else ""
    body = as_text(fields.get(columns.text))
    if title is None or body is None:
        name = columns.title if title is None else columns.text
        return rejected(position, BROKEN_JSON, f"{name} is an object or nested, not text")
    further = further_values([fields.get(name) if name else None for name in columns.further])
    return make_review(position, label, title, body, further)
