"""Find out how one file is to be read: its format, its columns and the scale of its labels.

The head of the file (1 MiB of its content) decides. Where that fits no format, the file's
name does.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import re
from collections.abc import Iterator

from preprocessing.files import CorruptArchive, InputError, open_bytes
from preprocessing.readers.columns import HEADERLESS, STAR_COLUMNS, Columns, Layout, find_columns
from preprocessing.readers.csv_format import csv_records
from preprocessing.readers.labels import SCALES, LabelReader, find_scale, whole_number
from preprocessing.readers.line_formats import FASTTEXT_LINE, parse_object
from preprocessing.readers.parquet_format import label_values, open_parquet
from preprocessing.readers.records import ReadOptions, Rejected, seen

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


def detect_format(path: str, options: ReadOptions) -> Layout:
    """How to read a file: what `options` leave open is found from its content, then its name.

    fastText shows by `__label__`, JSON lines by objects, Parquet by its magic bytes, CSV by a
    header with known column names, or without a header by a label in front of one or two
    texts. The scale of the labels is stars where the column's name says so (`rating`,
    `overall`, `Score`, ...); other columns, such as `label`, and a CSV file without a header
    are looked at, see `labels.find_scale`.

    Raises:
        InputError: the file cannot be opened, is of no format that is read, lacks a column,
            has labels whose scale is ambiguous, or an option has a value that does not exist.
    """
    check_options(options)
    head = _read_head(path)
    if not head:
        # Nothing to read, or an archive damaged at its start: any line format tells so.
        if options.format == "parquet" or (options.format == "auto" and _named(path) == "parquet"):
            return _parquet_layout(path, options)
        return Layout("fasttext", neutral=options.neutral)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path} is in UTF-16: convert it to UTF-8")
    head = head.removeprefix(codecs.BOM_UTF8)
    found = options.format if options.format != "auto" else _find_format(path, head, options)
    if found == "fasttext":
        return Layout("fasttext", neutral=options.neutral)
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


def _read_head(path: str) -> bytes:
    """The first lines of what is in a file; of a damaged archive those that are whole."""
    head = bytearray()
    try:
        with open_bytes(path) as stream:
            while len(head) < _HEAD and (data := stream.read(_HEAD - len(head))):
                head += data
    except CorruptArchive:
        return bytes(head[: head.rfind(b"\n") + 1])
    if len(head) == _HEAD and b"\n" in head:
        del head[head.rindex(b"\n") + 1 :]
    return bytes(head)


def _find_format(path: str, head: bytes, options: ReadOptions) -> str:
    if head.startswith(_PARQUET):
        return "parquet"
    lines = [line for line in head.splitlines() if line.strip()][:_LINES_LOOKED_AT]
    if any(FASTTEXT_LINE.fullmatch(line) for line in lines):
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


def _scale(
    path: str,
    options: ReadOptions,
    column: str | None,
    values: Iterator[object],
    ambiguous: str | None = None,
) -> str:
    if options.label_scale != "auto":
        return options.label_scale
    if column is not None and column.lower() in STAR_COLUMNS:
        return "stars"
    return find_scale(path, values, ambiguous)


def _jsonl_layout(path: str, head: bytes, options: ReadOptions) -> Layout:
    parsed = (parse_object(1, line) for line in head.split(b"\n"))
    objects = [fields for fields in parsed if isinstance(fields, dict)]
    if not objects:
        raise InputError(
            f"{path} has no JSON object at its head, it starts with '{seen(head)[:60]}': "
            "JSON lines has one object on each line; or set data.format to what it is"
        )
    present = list(dict.fromkeys(name for fields in objects for name in fields))
    columns = find_columns(path, present, options)
    labels = (fields.get(columns.label) for fields in objects)
    scale = _scale(path, options, columns.label, labels)
    return Layout("jsonl", columns, scale, options.neutral)


def _parquet_layout(path: str, options: ReadOptions) -> Layout:
    try:
        with open_bytes(path) as stream:
            file = open_parquet(path, stream)
            columns = find_columns(path, file.schema_arrow.names, options)
            labels = iter(label_values(file, columns.label))
    except CorruptArchive as damage:
        raise InputError(f"{damage}; fetch it again") from damage
    scale = _scale(path, options, columns.label, labels)
    return Layout("parquet", columns, scale, options.neutral)


def _csv_layout(path: str, head: bytes, options: ReadOptions) -> Layout:
    columns, header = _csv_columns(path, head, options)
    if header is None:
        at, name = 0, None
    else:
        at, name = [field.strip() for field in header].index(columns.label), columns.label
    width = len(header or [column for column in columns if column])
    labels = (fields[at] for fields in _good_records(head) if len(fields) == width)
    # Files without a header come from one family of datasets, which counts from 1 (negative).
    scale = _scale(path, options, name, labels, None if header else "one_two")
    return Layout("csv", columns, scale, options.neutral, header)


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


def _good_records(head: bytes, limit: int = 1 << 30) -> Iterator[list[str]]:
    for record in csv_records(io.BytesIO(head)):
        if limit <= 0:
            return
        limit -= 1
        if not isinstance(record, Rejected) and record[1]:
            yield record[1]
