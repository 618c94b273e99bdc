"""Detect how to read one file: its format, its columns, and the numbers among its labels.

The head of the file (1 MiB of its content) decides; if it fits no format, the name of the file
decides. `layouts` then chooses the scale of the labels for all files of an input together.
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
    unused_columns,
)
from preprocessing.reading.contents import refuse_other_content
from preprocessing.reading.files import open_bytes
from preprocessing.reading.formats import fasttext
from preprocessing.reading.formats.csv import sampled_records
from preprocessing.reading.formats.jsonl import parse_object
from preprocessing.reading.formats.parquet import check_types, label_values, open_parquet
from preprocessing.reading.labels import NUMBERS, STARS, canonical, is_headerless, labels_among
from preprocessing.reading.records import ReadOptions, printable
from preprocessing.reading.samples import csv_sample, samples

FORMATS = ("fasttext", "csv", "jsonl", "parquet")
_HEAD = 1 << 20
_LINES_INSPECTED = 20
_MAX_NAME = 60
"""Characters of the name of a column; a longer field of the first record is a text."""
_PARQUET = b"PAR1"
_NAMES = {
    "fasttext": r"\.ft(\.txt)?",
    "csv": r"\.(csv|tsv|tab)",
    "jsonl": r"\.(jsonl|ndjson|json)",
    "parquet": r"\.(parquet|pq)",
}
_ARCHIVE = r"(\.(bz2|gz|zst|zstd))?$"


class Head(NamedTuple):
    """The first lines of the content of a file. `is_all` is False if the file has more content."""

    data: bytes
    is_all: bool


class Inspection(NamedTuple):
    """The result of inspecting one file.

    Attributes:
        path: the file.
        layout: how to read the file; `layouts` decides its scale, unless `labels` is None.
        labels: the inspected labels, see `labels.canonical`; None if the column determines the
            scale, or labels are not read.
        complete: whether all labels of the file were inspected.
    """

    path: str
    layout: Layout
    labels: frozenset[str] | None
    complete: bool


def inspect(path: str, options: ReadOptions) -> Inspection:
    """Inspect a file: detect the `auto` and None values of `options` from its content and name.

    The format is fastText if a line starts with `__label__`, JSON lines if a line is an object, and
    Parquet by its magic bytes. It is CSV if there is a header with known column names, or, without
    a header, a label followed by one or two texts. The scale of the labels is stars for columns
    that contain stars in known datasets (`rating`, `overall`, `Score`, ...). For other columns,
    such as `label`, for a CSV file without a header and for fastText, labels from the head and from
    samples of the file are inspected.

    Raises:
        InputError: the file cannot be opened, has an unknown format or lacks a column (`NoReviews`
            if no reviews were recognised).
    """
    head = _read_head(path)
    layout, labels = _detect(path, head, options)
    layout = replace(layout, labels=options.labels)
    column = (layout.columns and layout.columns.label) or ""
    has_stars = column.lower() in STAR_COLUMNS and not options.label_map
    if has_stars or options.labels == "optional":
        return Inspection(path, replace(layout, label_scale=STARS), None, head.is_all)
    return Inspection(path, layout, frozenset(labels_among(labels)), head.is_all)


_Detected = tuple[Layout, Iterable[object]]
"""The layout of a file, and some of its labels, which are read only if they are used."""


def _detect(path: str, head: Head, options: ReadOptions) -> _Detected:
    data = head.data
    if not data or (head.is_all and not data.strip()):
        # The file is empty, or an archive that is damaged at its start, which its reader reports.
        wanted = _format_of_name(path) if options.format == "auto" else options.format
        if wanted == "parquet":
            return _parquet_layout(path, options)
        return Layout("empty"), ()
    head = head._replace(data=data.removeprefix(codecs.BOM_UTF8))
    found = options.format if options.format != "auto" else _find_format(path, head.data, options)
    if found in ("fasttext", "jsonl") and b"\n" not in head.data and b"\r" in head.data.strip():
        raise InputError(
            f"{path} has lines that end with CR alone: convert it with "
            r"`tr '\r' '\n' < FILE > NEW_FILE`"
        )
    if found == "fasttext":
        return _fasttext_layout(path, head)
    if found == "jsonl":
        return _jsonl_layout(path, head, options)
    if found == "parquet":
        return _parquet_layout(path, options)
    return _csv_layout(path, head, options)


def _read_head(path: str) -> Head:
    """Return the first lines of the content of a file, without a line that the limit cuts.

    A line that the damage of an archive cuts is left out, too.

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
    return Head(bytes(head), is_all)


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
    by_name = _format_of_name(path)
    if by_name is None:
        if options.labels == "optional" and re.search(r"\.txt" + _ARCHIVE, path.lower()):
            return "fasttext"  # plain text, a review on each line
        dialect, first = _widest(head)
        if len(first) > 1 and (options.columns or _regular(head, dialect) > 2):
            return "csv"  # the only other format with columns; a missing one is reported later
        raise NoReviews(
            f"{path} is of no known format, it starts with '{printable(head)[:60]}': set "
            f"data.format to one of {', '.join(FORMATS)} (JSON: one object a line; CSV: see "
            "data.columns)"
        )
    return by_name


def _format_of_name(path: str) -> str | None:
    name = path.lower().rsplit("/", 1)[-1]
    return next((kind for kind, end in _NAMES.items() if re.search(end + _ARCHIVE, name)), None)


def _fasttext_layout(path: str, head: Head) -> _Detected:
    def labels() -> Iterator[object]:
        for lines in (head.data, *(() if head.is_all else samples(path))):
            yield from fasttext.first_labels(lines)

    return Layout("fasttext"), labels()


def _jsonl_layout(path: str, head: Head, options: ReadOptions) -> _Detected:
    objects = list(_objects(head.data))
    if not objects:
        raise NoReviews(
            f"{path} has no JSON object at its start, it starts with "
            f"'{printable(head.data)[:60]}': a JSON lines file has one object on each line; for "
            "another format set data.format"
        )
    present = list(dict.fromkeys(name for fields in objects for name in fields))
    columns = find_columns(path, present, options)

    def labels() -> Iterator[object]:
        yield from (fields.get(columns.label or "") for fields in objects)
        for lines in () if head.is_all else samples(path):
            yield from (fields.get(columns.label or "") for fields in _objects(lines))

    return Layout("jsonl", columns, unused=unused_columns(present, columns)), labels()


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.split(b"\n"):
        fields = parse_object(1, line)
        if isinstance(fields, dict):
            yield fields


def _parquet_layout(path: str, options: ReadOptions) -> _Detected:
    def labels() -> Iterator[object]:
        with open_bytes(path) as stream:
            yield from label_values(open_parquet(path, stream), columns.label or "")

    try:
        with open_bytes(path) as stream:
            file = open_parquet(path, stream)
            names = file.schema_arrow.names
            columns = find_columns(path, names, options)
            check_types(path, file, columns)
    except CorruptArchive as damage:
        raise InputError(f"{damage}; download it again") from damage
    return Layout("parquet", columns, unused=unused_columns(names, columns)), labels()


def _csv_layout(path: str, head: Head, options: ReadOptions) -> _Detected:
    columns, header, dialect = _csv_columns(path, head.data, options)
    names = [field.strip() for field in header or columns[:3] if field is not None]
    at = names.index(columns.label) if columns.label else 0

    def labels() -> Iterator[object]:
        records = _records(head.data, dialect)
        yield from (r[at] for r in records if len(r) == len(names) and tuple(r) != header)
        for lines in () if head.is_all else samples(path):
            yield from (fields[at] for fields in csv_sample(lines, len(names), dialect))

    unused = unused_columns(names, columns)
    return Layout("csv", columns, header=header, dialect=dialect, unused=unused), labels()


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
    separated = f",{dialect.with_separator}," if dialect.with_separator else ""
    if any(len(field) > _MAX_NAME or canonical(field) in NUMBERS for field in first):
        raise NoReviews(
            f"{path} has no header: its first record{separated} is {printable(first)}; add a line "
            "with the names of its columns, such as rating, title and text"
        )
    names = [name.strip() for name in first]
    return find_columns(path, names, options, separated), tuple(first), dialect


def _dialects(head: bytes) -> Iterator[Dialect]:
    """Yield the possible dialects of a CSV file, the most frequent one first."""
    ends_with_cr = head.count(b"\r") > head.count(b"\r\n")
    if ends_with_cr:
        outside = re.sub(rb'"[^"]*"', b"", head)
        ends_with_cr = len(re.findall(rb"\r(?!\n)", outside)) > outside.count(b"\n")
    for separator in SEPARATORS:
        dialect = Dialect(separator, ends_with_cr=ends_with_cr)
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
