"""Find out how one file is to be read: its format, its columns and what its labels show.

The head of the file (1 MiB of its content) decides. Where that fits no format, the file's
name does. What scale its labels are on is decided for all files of an input, see `agreement`.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from core.errors import InputError
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.columns import HEADERLESS, STAR_COLUMNS, Columns, Layout, find_columns
from preprocessing.reading.files import open_bytes
from preprocessing.reading.formats import fasttext
from preprocessing.reading.formats.csv import sampled_records
from preprocessing.reading.formats.jsonl import parse_object
from preprocessing.reading.formats.parquet import label_values, open_parquet
from preprocessing.reading.labels import ON_A_SCALE, SCALES, LabelReader, whole_number
from preprocessing.reading.records import ReadOptions, Rejected, seen
from preprocessing.reading.samples import csv_sample, samples

FORMATS = ("fasttext", "csv", "jsonl", "parquet")
_HEAD = 1 << 20
_LINES_LOOKED_AT = 20
_PARQUET = b"PAR1"
_NAMES = {
    "fasttext": r"\.ft(\.txt)?",
    "csv": r"\.csv",
    "jsonl": r"\.(jsonl|ndjson|json)",
    "parquet": r"\.(parquet|pq)",
}


class Head(NamedTuple):
    """The first lines of what is in a file; `is_all` says that there is nothing behind them."""

    data: bytes
    is_all: bool

    @property
    def digest(self) -> bytes:
        return hashlib.sha256(self.data).digest()


class Inspection(NamedTuple):
    """What one file shows.

    `layout` is how to read it, except for the scale of its labels where that is to be guessed.
    Then `numbers` are the numbers from 0 to 5 among the labels that were looked at; it is None
    where the scale is known. `size` and `digest` are those of the head's content.
    """

    path: str
    layout: Layout
    numbers: frozenset[int] | None
    size: int
    digest: bytes
    is_all: bool


def inspect(path: str, options: ReadOptions) -> Inspection:
    """Look at a file: what `options` leave open is found from its content, then its name.

    fastText shows by `__label__`, JSON lines by objects, Parquet by its magic bytes, CSV by a
    header with known column names, or without a header by a label in front of one or two
    texts. The scale of the labels is stars where the column's name says so (`rating`,
    `overall`, `Score`, ...). Of other columns, such as `label`, and of a CSV file without a
    header, labels from the head and from places all over the file are looked at.

    Raises:
        InputError: the file cannot be opened, is of no format that is read, lacks a column,
            or an option has a value that does not exist.
    """
    check_options(options)
    head = _read_head(path)
    layout, labels = _detect(path, head, options)
    numbers = None if labels is None else frozenset(_numbers(labels))
    return Inspection(path, layout, numbers, len(head.data), head.digest, head.is_all)


_Detected = tuple[Layout, Iterable[object] | None]
"""How to read a file, and labels that show their scale; None where the scale is known."""


def _detect(path: str, head: Head, options: ReadOptions) -> _Detected:
    data = head.data
    if not data:
        # Nothing to read, or an archive damaged at its start: any line format tells so.
        if options.format == "parquet" or (options.format == "auto" and _named(path) == "parquet"):
            return _parquet_layout(path, options)
        return Layout("fasttext", neutral=options.neutral), None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path} is in UTF-16: convert it to UTF-8")
    head = head._replace(data=data.removeprefix(codecs.BOM_UTF8))
    found = options.format if options.format != "auto" else _find_format(path, head.data, options)
    if found == "fasttext":
        return Layout("fasttext", neutral=options.neutral), None
    if found == "jsonl":
        return _jsonl_layout(path, head, options)
    if found == "parquet":
        return _parquet_layout(path, options)
    return _csv_layout(path, head, options)


def check_options(options: ReadOptions) -> None:
    """Raises InputError when an option has a value that does not exist."""
    for setting, value, known in (
        ("data.format", options.format, ("auto", *FORMATS)),
        ("data.label_scale", options.label_scale, ("auto", *SCALES)),
        ("data.neutral", options.neutral, ("leave_out", "negative", "positive")),
    ):
        if value not in known:
            raise InputError(f"{setting} is '{value}': it must be one of {', '.join(known)}")


def _read_head(path: str) -> Head:
    """The first lines of what is in a file; of a damaged archive those that are whole."""
    head = bytearray()
    try:
        with open_bytes(path) as stream:
            while len(head) < _HEAD and (data := stream.read(_HEAD - len(head))):
                head += data
    except CorruptArchive:
        return Head(bytes(head[: head.rfind(b"\n") + 1]), False)
    is_all = len(head) < _HEAD
    if not is_all and b"\n" in head:
        del head[head.rindex(b"\n") + 1 :]
    return Head(bytes(head), is_all)


def _find_format(path: str, head: bytes, options: ReadOptions) -> str:
    if head.startswith(_PARQUET):
        return "parquet"
    lines = [line for line in head.splitlines() if line.strip()][:_LINES_LOOKED_AT]
    if any(fasttext.LINE.fullmatch(line) for line in lines):
        return "fasttext"
    if any(isinstance(parse_object(1, line), dict) for line in lines):
        return "jsonl"
    with contextlib.suppress(InputError):
        _csv_columns(path, head, options)
        return "csv"
    named = _named(path)
    told = options.label or options.title or options.text
    if named is None and told and len(next(_good_records(head), [])) > 1:
        return "csv"  # what is left with columns; which ones it lacks is said later
    if named is None or (named == "jsonl" and lines and lines[0].lstrip().startswith(b"[")):
        raise InputError(
            f"{path} is of no known format, it starts with '{seen(head)[:60]}': set data.format "
            f"to one of {', '.join(FORMATS)} (JSON: one object a line; CSV: see data.columns)"
        )
    return named


def _named(path: str) -> str | None:
    name = path.lower().rsplit("/", 1)[-1]
    for known, suffix in _NAMES.items():
        if re.search(suffix + r"(\.(bz2|gz|zst|zstd))?$", name):
            return known
    return None


def _numbers(labels: Iterable[object]) -> Iterator[int]:
    for label in labels:
        if isinstance(label, bytes):
            label = label.decode("utf-8", "replace")
        if isinstance(label, bool):
            yield from (0, 1)  # truth values, even if only one of them was seen
        number = whole_number(label)
        if number is not None and number in ON_A_SCALE:
            yield number


def _known_scale(options: ReadOptions, column: str | None) -> str | None:
    if options.label_scale != "auto":
        return options.label_scale
    return "stars" if column is not None and column.lower() in STAR_COLUMNS else None


def _layout(
    layout: Layout, column: str | None, options: ReadOptions, labels: Iterable[object]
) -> _Detected:
    known = _known_scale(options, column)
    if known is None:
        return layout, labels
    return replace(layout, label_scale=known), None


def _jsonl_layout(path: str, head: Head, options: ReadOptions) -> _Detected:
    objects = list(_objects(head.data))
    if not objects:
        raise InputError(
            f"{path} has no JSON object at its head, it starts with '{seen(head.data)[:60]}': "
            "JSON lines has one object on each line; or set data.format to what it is"
        )
    present = list(dict.fromkeys(name for fields in objects for name in fields))
    columns = find_columns(path, present, options)

    def labels() -> Iterator[object]:
        yield from (fields.get(columns.label) for fields in objects)
        for lines in () if head.is_all else samples(path):
            yield from (fields.get(columns.label) for fields in _objects(lines))

    layout = Layout("jsonl", columns, neutral=options.neutral)
    return _layout(layout, columns.label, options, labels())


def _objects(lines: bytes) -> Iterator[dict[str, Any]]:
    for line in lines.split(b"\n"):
        fields = parse_object(1, line)
        if isinstance(fields, dict):
            yield fields


def _parquet_layout(path: str, options: ReadOptions) -> _Detected:
    try:
        with open_bytes(path) as stream:
            file = open_parquet(path, stream)
            columns = find_columns(path, file.schema_arrow.names, options)
            is_known = _known_scale(options, columns.label) is not None
            labels = [] if is_known else label_values(file, columns.label)
    except CorruptArchive as damage:
        raise InputError(f"{damage}; fetch it again") from damage
    layout = Layout("parquet", columns, neutral=options.neutral)
    return _layout(layout, columns.label, options, labels)


def _csv_layout(path: str, head: Head, options: ReadOptions) -> _Detected:
    columns, header = _csv_columns(path, head.data, options)
    if header is None:
        at, name = 0, None
    else:
        at, name = [field.strip() for field in header].index(columns.label), columns.label
    width = len(header or [column for column in columns if column])

    def labels() -> Iterator[object]:
        yield from (fields[at] for fields in _good_records(head.data) if len(fields) == width)
        for lines in () if head.is_all else samples(path):
            yield from (fields[at] for fields in csv_sample(lines, width))

    layout = Layout("csv", columns, neutral=options.neutral, header=header)
    return _layout(layout, name, options, labels())


def _csv_columns(
    path: str, head: bytes, options: ReadOptions
) -> tuple[Columns, tuple[str, ...] | None]:
    """The columns of a CSV file, and its header unless it has none."""
    records = list(_good_records(head, _LINES_LOOKED_AT)) or [[]]
    try:
        columns = find_columns(path, [name.strip() for name in records[0]], options)
    except InputError:
        if options.label or options.title or options.text or not _is_headerless(records[0]):
            raise
        title = HEADERLESS.title if len(records[0]) == 3 else None
        return HEADERLESS._replace(title=title), None
    return columns, tuple(records[0])


def _is_headerless(fields: list[str]) -> bool:
    """Whether it is a review of a file without a header: a label, a title or none, a text."""
    if len(fields) not in (2, 3):
        return False
    is_number = whole_number(fields[0]) in range(6)
    return is_number or LabelReader("one_two", "leave_out").read(fields[0]) is not None


def _good_records(head: bytes, limit: int | None = None) -> Iterator[list[str]]:
    for fields in islice(sampled_records(io.BytesIO(head)), limit):
        if not isinstance(fields, Rejected) and fields:
            yield fields
