"""Detect how to read one file: its format, its columns, and the numbers among its labels.

The head of the file (1 MiB of its content) decides, and for the labels also samples behind it.
`layouts` then chooses the scale of the labels for all files of an input together.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
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
from preprocessing.reading.samples import csv_sample, samples

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
    head, is_all = _read_head(path)
    layout, labels, labels_in = _detect(path, head, options)
    layout = replace(layout, labels=options.labels)
    column = (layout.columns and layout.columns.label) or ""
    has_stars = column.lower() in STAR_COLUMNS and not options.label_map
    if has_stars or options.labels == "optional":
        return Inspection(path, replace(layout, label_scale=STARS), None)
    if labels_in and not is_all:
        labels = chain(labels, chain.from_iterable(map(labels_in, samples(path))))
    return Inspection(path, layout, frozenset(labels_among(labels)))


class _Detected(NamedTuple):
    """The layout of a file, the labels in its head, and the function that returns those in lines
    from another place of the file."""

    layout: Layout
    labels: Iterable[object] = ()
    labels_in: Callable[[bytes], Iterable[object]] | None = None


def _detect(path: str, head: bytes, options: ReadOptions) -> _Detected:
    # An archive that is damaged at its start has no content either.
    if not head.strip():
        return _Detected(Layout("empty"))
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
        return _Detected(Layout("fasttext"), fasttext.first_labels(data), fasttext.first_labels)
    if found == "jsonl":
        return _jsonl_layout(path, data, options)
    if found == "parquet":
        return _parquet_layout(path, options)
    return _csv_layout(path, data, options)


def _read_head(path: str) -> tuple[bytes, bool]:
    """Return the first lines of the content of a file, without one that is cut, and whether they
    are all of it.

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
    is_all = len(head) < _HEAD and not damaged
    if damaged or (not is_all and b"\n" in head):
        del head[head.rfind(b"\n") + 1 :]
    return bytes(head), is_all


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

    def labels_in(lines: bytes) -> Iterator[object]:
        return (fields.get(columns.label or "") for fields in _objects(lines))

    return _Detected(Layout("jsonl", columns), labels_in(head), labels_in)


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
    return _Detected(Layout("parquet", columns), labels())


def _csv_layout(path: str, head: bytes, options: ReadOptions) -> _Detected:
    columns, header, dialect = _csv_columns(path, head, options)
    names = [field.strip() for field in header or columns[:3] if field is not None]
    at = names.index(columns.label) if columns.label else 0

    def labels_in(lines: bytes) -> Iterator[object]:
        return (fields[at] for fields in csv_sample(lines, len(names), dialect))

    rows = (r for r in _records(head, dialect) if len(r) == len(names) and tuple(r) != header)
    layout = Layout("csv", columns, header=header, dialect=dialect)
    return _Detected(layout, (fields[at] for fields in rows), labels_in)


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
