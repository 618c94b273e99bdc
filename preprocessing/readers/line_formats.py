"""The formats with one review a line: fastText and JSON lines."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from preprocessing.files import CorruptArchive, iter_lines
from preprocessing.readers.columns import HEADERLESS, Layout
from preprocessing.readers.labels import LabelReader
from preprocessing.readers.records import (
    BAD_LABEL,
    BROKEN_JSON,
    CORRUPT_ARCHIVE,
    INVALID_UTF8,
    LINE_TOO_LONG,
    NO_TEXT,
    Neutral,
    Record,
    Rejected,
    Review,
    as_text,
    make_review,
    rejected,
    seen,
)

LineParser = Callable[[int, bytes], Record]

FASTTEXT_LINE = re.compile(rb"(__label__[^\s,]+)(?:[ \t](.*))?", re.DOTALL)
TOO_LONG = "more than 1,048,576 bytes"
# Nearly every line there is: found by one look-up, without the pattern.
USUAL = {b"__label__1 ": 0, b"__label__2 ": 1}
USUAL_LENGTH = 11
_BLANK = "a blank line"


def read_fasttext(stream: BinaryIO, layout: Layout) -> Iterator[Record]:
    """Reads `__label__1 Title: body`, where 1 is negative and 2 positive.

    The title is what stands before the first `: `. Both parts keep every character, so that
    `Review.text` is the text of the line.
    """
    return _read(stream, fasttext_parser(layout))


def fasttext_parser(layout: Layout) -> LineParser:
    """What makes a record of a line, see `read_fasttext`, and of its position."""
    labels = LabelReader("one_two", layout.neutral)

    def parse(position: int, line: bytes) -> Record:
        label = USUAL.get(line[:USUAL_LENGTH])
        if label is None:
            return _parse_unusual(position, line, labels)
        return _parse_text(position, label, line[USUAL_LENGTH:])

    return parse


def _parse_unusual(position: int, line: bytes, labels: LabelReader) -> Record:
    if not line.strip():
        return rejected(position, NO_TEXT, _BLANK)
    match = FASTTEXT_LINE.fullmatch(line)
    label = labels.read(match[1].decode("utf-8", "replace")) if match else None
    if match is None or label is None:
        return rejected(position, BAD_LABEL, line)
    return _parse_text(position, label, match[2] or b"")


def _parse_text(position: int, label: int, data: bytes) -> Record:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return rejected(position, INVALID_UTF8, data[error.start :])
    if not text or text.isspace():
        return rejected(position, NO_TEXT, "nothing after the label")
    if "\0" in text:
        return rejected(position, INVALID_UTF8, "a NUL character")
    if text.startswith("__label__"):
        return rejected(position, BAD_LABEL, "more than one label: " + text)
    if label < 0:
        return Neutral(position)
    end = text.find(": ")
    if end > 0 and not text[:end].isspace():
        return Review(position, label, text[:end], text[end + 2 :])
    return Review(position, label, "", text)


def read_jsonl(stream: BinaryIO, layout: Layout) -> Iterator[Record]:
    """Reads one JSON object a line. A title or text that is missing or null is empty."""
    return _read(stream, jsonl_parser(layout))


def jsonl_parser(layout: Layout) -> LineParser:
    """What makes a record of a line, see `read_jsonl`, and of its position."""
    columns = layout.columns or HEADERLESS
    labels = LabelReader(layout.label_scale, layout.neutral, layout.scale_is_guessed)

    def parse(position: int, line: bytes) -> Record:
        fields = parse_object(position, line)
        if isinstance(fields, Rejected):
            return fields
        value = fields.get(columns.label)
        label = labels.read(value)
        if label is None:
            return rejected(position, labels.reason(value), _label_seen(fields, columns.label))
        title = as_text(fields.get(columns.title)) if columns.title else ""
        body = as_text(fields.get(columns.text))
        if title is None or body is None:
            name = columns.title if title is None else columns.text
            return rejected(position, BROKEN_JSON, f"{name} is an object or nested, not text")
        return make_review(position, label, title, body)

    return parse


PARSERS = {"fasttext": fasttext_parser, "jsonl": jsonl_parser}
"""Format -> what makes the parser of its lines."""


def parse_object(position: int, line: bytes) -> dict[str, Any] | Rejected:
    """The JSON object on a line, or why there is none."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return rejected(position, INVALID_UTF8, line[error.start :])
    if "\0" in text:
        return rejected(position, INVALID_UTF8, "a NUL character")
    if not text or text.isspace():
        return rejected(position, NO_TEXT, _BLANK)
    try:
        value = json.loads(text)
    # ValueError: also a number of thousands of digits. RecursionError: thousands of brackets.
    except (ValueError, RecursionError) as error:
        return rejected(position, BROKEN_JSON, f"{seen(str(error))[:80]}: {text[:200]}")
    if not isinstance(value, dict):
        return rejected(position, BROKEN_JSON, "not an object: " + text[:200])
    return value


def _label_seen(fields: dict[str, Any], name: str) -> str:
    if name not in fields:
        return f"no {name}"
    return f"{name}: {seen(fields[name])}"


def _read(stream: BinaryIO, parse: LineParser) -> Iterator[Record]:
    """One record for every line; a line that damage to an archive cuts is one as well."""
    position = 0
    try:
        for position, line in iter_lines(stream):
            if line is None:
                yield rejected(position, LINE_TOO_LONG, TOO_LONG)
                continue
            if position == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            yield parse(position, line)
    except CorruptArchive as damage:
        yield rejected(position + 1, CORRUPT_ARCHIVE, damage.detail)
