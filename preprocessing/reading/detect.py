"""Detect how to read one file: its format, its columns, and the numbers among its labels.

The head of the file (1 MiB of its content) decides. `layouts` then chooses the scale of the labels
for all files of an input together.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from core.errors import InputError
from preprocessing.reading.archives import CorruptArchive, DecompressedStream
from preprocessing.reading.columns import (
    HEADERLESS,
    SEPARATORS,
    STAR_COLUMNS,
    Columns,
    Dialect,
    Layout,
    NoReviews,
    find_columns,
)
from preprocessing.reading.contents import refuse_other_content
from preprocessing.reading.files import open_bytes
from preprocessing.reading.formats import fasttext
from preprocessing.reading.formats.csv import sampled_records
from preprocessing.reading.formats.jsonl import parse_object
from preprocessing.reading.formats.parquet import label_values, open_parquet
from preprocessing.reading.labels import STARS, is_headerless, labels_among
from preprocessing.reading.records import ReadOptions, printable

FORMATS = ("fasttext", "csv", "jsonl", "parquet")
_HEAD = 1 << 20
_LINES_INSPECTED = 20
_PARQUET = b"PAR1"
_TEXT_NAME = re.compile(r".*\.txt(\.\w+)?", re.IGNORECASE)
_CSV_NAME = re.compile(r".*\.(csv|tsv)(\.\w+)?", re.IGNORECASE)


class Inspection(NamedTuple):
    """The result of inspecting one file.

    Attributes:
        path: the file.
        layout: how to read the file; `layouts` decides its scale, unless `labels` is None.
        labels: the inspected labels, see `labels.canonical`; None if the column determines the
            scale, or labels are not read.
    """

    path: str
    layout: Layout
    labels: frozenset[str] | None


def inspect(path: str, options: ReadOptions) -> Inspection:
    """Inspect a file: detect what `options` does not set from its content.

    Raises:
        InputError: the file cannot be opened, has an unknown format or lacks a column (`NoReviews`
            if no reviews were recognised).
    """
    layout, labels = _detect(path, _read_head(path), options)
    layout = replace(layout, labels=options.labels)
    column = (layout.columns and layout.columns.label) or ""
    has_stars = column.lower() in STAR_COLUMNS and not options.label_map
    if has_stars or options.labels == "optional":
        return Inspection(path, replace(layout, label_scale=STARS), None)
    return Inspection(path, layout, frozenset(labels_among(labels)))


_Detected = tuple[Layout, Iterable[object]]
"""The layout of a file, and labels of it, which are read only if they are used."""


def _detect(path: str, head: bytes, options: ReadOptions) -> _Detected:
    # An archive that is damaged at its start has no content either.
    if not head.strip():
        return Layout("empty"), ()
    data = head.removeprefix(codecs.BOM_UTF8)
    # A quoted field may contain line breaks.
    outside = re.sub(rb'"[^"]*"', b"", data)
    if b"\r" in outside.strip() and b"\n" not in outside and not data.startswith(_PARQUET):
        raise InputError(
            f"{path} has lines that end with CR alone: convert it with "
            r"`tr '\r' '\n' < FILE > NEW_FILE`"
        )
    found = options.format if options.format != "auto" else _find_format(path, data, options)
    if found == "fasttext":
        return Layout("fasttext"), fasttext.first_labels(data)
    if found == "jsonl":
        return _jsonl_layout(path, data, options)
    if found == "parquet":
        return _parquet_layout(path, options)
    return _csv_layout(path, data, options)


def _read_head(path: str) -> bytes:
    """Return the first lines of the content of a file, without one that is cut.

    Raises:
        InputError: see `open_bytes` and `refuse_other_content`.
    """
    head, packed, damaged = bytearray(), False, False
    try:
        with open_bytes(path) as stream:
            packed = isinstance(stream, DecompressedStream)
            while len(head) < _HEAD and (data := stream.read(_HEAD - len(head))):
                head += data
    except CorruptArchive:
        damaged = True
    refuse_other_content(path, bytes(head[:512]), packed)
    if damaged or (len(head) == _HEAD and b"\n" in head):
        del head[head.rfind(b"\n") + 1 :]
    return bytes(head)


def _find_format(path: str, head: bytes, options: ReadOptions) -> str:
    if head.startswith(_PARQUET):
        return "parquet"
    lines = [line for line in head.splitlines() if line.strip()][:_LINES_INSPECTED]
    if any(fasttext.LINE.fullmatch(line) for line in lines):
        return "fasttext"
    if any(isinstance(parse_object(1, line), dict) for line in lines):
        return "jsonl"
    with contextlib.suppress(InputError):
        _csv_columns(path, head, options)
        return "csv"
    if options.labels == "optional" and _TEXT_NAME.fullmatch(path):
        return "fasttext"  # plain text, a review on each line
    dialect, first = _widest(head)
    has_columns = len(first) > 1 and (options.columns or _regular(head, dialect) > 2)
    if has_columns or _CSV_NAME.fullmatch(path):
        return "csv"  # a missing column is reported later
    raise NoReviews(
        f"{path} is of no known format, it starts with '{printable(head)[:60]}': set "
        f"data.format to one of {', '.join(FORMATS)} (JSON: one object a line; CSV: see "
        "data.columns)"
    )


def _jsonl_layout(path: str, head: bytes, options: ReadOptions) -> _Detected:
    present = list(dict.fromkeys(name for fields in _objects(head) for name in fields))
    columns = find_columns(path, present, options)
    labels = (fields.get(columns.label or "") for fields in _objects(head))
    return Layout("jsonl", columns), labels


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.split(b"\n"):
        fields = parse_object(1, line)
        if isinstance(fields, dict):
            yield fields


def _parquet_layout(path: str, options: ReadOptions) -> _Detected:
    def labels() -> Iterator[object]:
        with open_bytes(path) as stream:
            yield from label_values(open_parquet(path, stream), columns.label or "")

    with open_bytes(path) as stream:
        names = open_parquet(path, stream).schema_arrow.names
    columns = find_columns(path, names, options)
    return Layout("parquet", columns), labels()


def _csv_layout(path: str, head: bytes, options: ReadOptions) -> _Detected:
    columns, header, dialect = _csv_columns(path, head, options)
    names = [field.strip() for field in header or columns[:3] if field is not None]
    at = names.index(columns.label) if columns.label else 0
    rows = (r for r in _records(head, dialect) if len(r) == len(names) and tuple(r) != header)
    return Layout("csv", columns, header=header, dialect=dialect), (fields[at] for fields in rows)


def _csv_columns(
    path: str, head: bytes, options: ReadOptions
) -> tuple[Columns, tuple[str, ...] | None, Dialect]:
    """Return the columns of a CSV file, its header (None for a file without one), its dialect.

    The separator is the first with which the columns are found.
    """
    for dialect in _dialects(head):
        first = next(_records(head, dialect), [])
        with contextlib.suppress(NoReviews):
            names = [name.strip() for name in first]
            return find_columns(path, names, options), tuple(first), dialect
        if not options.columns and dialect.separator in ",\t" and is_headerless(first, options):
            title = HEADERLESS.title if len(first) == 3 else None
            dialect = dialect._replace(escaped=dialect.separator == ",")
            return HEADERLESS._replace(title=title), None, dialect
    dialect, first = _widest(head)
    names = [name.strip() for name in first]
    return find_columns(path, names, options), tuple(first), dialect


def _dialects(head: bytes) -> Iterator[Dialect]:
    """Yield the possible dialects of a CSV file, the most frequent one first."""
    for separator in SEPARATORS:
        dialect = Dialect(separator)
        if separator == "\t" and b'"' in head:
            # Spreadsheets write quoted fields, and Amazon's own open data has lone quotes.
            plain = dialect._replace(quoted=False)
            dialect = max(dialect, plain, key=lambda one: _regular(head, one))
        yield dialect


def _regular(head: bytes, dialect: Dialect) -> int:
    """Return how many records have as many fields as the first one."""
    widths = [len(fields) for fields in _records(head, dialect)]
    return widths.count(widths[0]) if widths else 0


def _widest(head: bytes) -> tuple[Dialect, list[str]]:
    """Return the dialect whose first record has the most fields, and this record."""
    found = [(dialect, next(_records(head, dialect), [])) for dialect in _dialects(head)]
    return max(found, key=lambda item: len(item[1]))


def _records(head: bytes, dialect: Dialect) -> Iterator[list[str]]:
    return filter(None, sampled_records(head, dialect))
