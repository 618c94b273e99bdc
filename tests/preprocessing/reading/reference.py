"""A simple reference reader: one line after the other, everything decoded at once.

The reader of the product has to give the same records, whatever the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.columns import HEADERLESS, Layout
from preprocessing.reading.files import open_bytes
from preprocessing.reading.formats import csv, jsonl, parquet
from preprocessing.reading.labels import label_reader
from preprocessing.reading.layouts import detect_format
from preprocessing.reading.lines import MAX_LINE_BYTES, TOO_LONG
from preprocessing.reading.records import (
    BAD_LABEL,
    CORRUPT_ARCHIVE,
    INVALID_UTF8,
    LINE_TOO_LONG,
    NO_TEXT,
    Neutral,
    ReadOptions,
    Record,
    Review,
    rejected,
)


def read_reviews(path: str, options: ReadOptions | None = None) -> Iterator[Record]:
    """Return the records of a file in their order; raise the errors of `detect_format` at once."""
    return _records(path, detect_format(path, options or ReadOptions()))


def _records(path: str, layout: Layout) -> Iterator[Record]:
    try:
        stream = open_bytes(path)
    except CorruptArchive as damage:
        yield rejected(1, CORRUPT_ARCHIVE, damage.detail)
        return
    with stream:
        if layout.format == "csv":
            yield from csv.read_csv(path, stream, layout)
        elif layout.format == "parquet":
            yield from parquet.read_parquet(path, stream, layout)
        else:
            yield from _lines(stream, layout)


def _lines(stream: BinaryIO, layout: Layout) -> Iterator[Record]:
    content, damage = b"", None
    try:
        while part := stream.read(1 << 20):
            content += part
    except CorruptArchive as error:
        damage = rejected(content.count(b"\n") + 1, CORRUPT_ARCHIVE, error.detail)
    *lines, last = content.split(b"\n")
    lines += [last] if last and damage is None else []
    for number, line in enumerate(lines, 1):
        line = (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).removesuffix(b"\r")
        if len(line) > MAX_LINE_BYTES:
            yield rejected(number, LINE_TOO_LONG, TOO_LONG)
        else:
            yield (_fasttext if layout.format == "fasttext" else _jsonl)(number, line, layout)
    if damage:
        yield damage


def _jsonl(number: int, line: bytes, layout: Layout) -> Record:
    labels = label_reader(layout)
    return jsonl._parse(number, line, layout.columns or HEADERLESS, labels)


def _fasttext(number: int, line: bytes, layout: Layout) -> Record:
    if not line.strip():
        return rejected(number, NO_TEXT, "a blank line")
    head = line.replace(b"\t", b" ").split(b" ")[0]
    if not head.startswith(b"__label__") or set(head) & set(b",\n\r\v\f"):
        return rejected(number, BAD_LABEL, line)
    labels = label_reader(layout)
    label = labels.read(head.decode("utf-8", "replace"))
    if label is None:
        return rejected(number, labels.reason(head.decode("utf-8", "replace")), line)
    data = line[len(head) + 1 :]
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return rejected(number, INVALID_UTF8, data[error.start :])
    if not text.strip():
        return rejected(number, NO_TEXT, "nothing after the label")
    if "\0" in text:
        return rejected(number, INVALID_UTF8, "a NUL character")
    if text.startswith("__label__"):
        return rejected(number, BAD_LABEL, "more than one label: " + text)
    if label < 0:
        return Neutral(number)
    return Review(number, label, text)
