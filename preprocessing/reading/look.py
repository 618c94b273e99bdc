"""Read the first records of a file as a table, also if the columns of a review are unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from core.errors import InputError
from preprocessing.reading import header
from preprocessing.reading.columns import COMMAS, HEADERLESS, Dialect, Layout, names_of
from preprocessing.reading.contents import PARQUET_MAGIC
from preprocessing.reading.csv_layout import csv_layout, find_late_header, widest
from preprocessing.reading.file_format import (
    UnknownFormatError,
    find_format,
    objects,
)
from preprocessing.reading.formats import csv, parquet
from preprocessing.reading.formats.csv_records import head_records
from preprocessing.reading.open_files import open_bytes
from preprocessing.reading.records import ReadOptions
from preprocessing.reading.samples import read_head

_MOST, _BYTES = 500, 1 << 17
"""Maximum number of records that are read, and of bytes that contain them."""


class Table(NamedTuple):
    """The first records of a file with columns."""

    format: str
    """`csv`, `jsonl` or `parquet`."""
    dialect: Dialect
    """The syntax of a CSV file."""
    names: list[str]
    """The names of the columns, in the order of the file."""
    records: Sequence[Mapping[str, Any]]


def read_table(path: str, options: ReadOptions, layout: Layout | None = None) -> Table | None:
    """Return the first records of a file; None if it has no columns with names.

    Args:
      path: path or URL of the file.
      options: the options for reading it.
      layout: its layout; None: it is unknown.

    Raises:
      InputError: the file cannot be read, or is not reviews.
    """
    head = _first_lines(read_head(path)[0])
    if not head.strip():
        return None
    found = layout.format if layout else options.format
    if found == "auto":
        try:
            found = find_format(path, head, options)
        except UnknownFormatError:
            found = "csv" if len(widest(head)[1]) > 1 else ""
        except InputError:
            return None
    if found == "jsonl":
        records = list(islice(objects(head), _MOST))
        return Table(found, COMMAS, names_of(records), records)
    if found == "parquet":
        with open_bytes(path) as stream:
            file = parquet.open_parquet(path, stream)
            names = list(dict.fromkeys(file.schema_arrow.names))
            return Table(found, COMMAS, names, parquet.first_rows(file, _MOST))
    return _csv_table(path, head, options, layout) if found == "csv" else None


def _first_lines(head: bytes) -> bytes:
    """Return the beginning of a head, because the detection of a dialect takes a second a MiB."""
    if len(head) <= _BYTES or head.startswith(PARQUET_MAGIC):
        return head
    end = head.rfind(b"\n", 0, _BYTES)
    return head[: end + 1] if end >= 0 else head


def _csv_table(path: str, head: bytes, options: ReadOptions, layout: Layout | None) -> Table | None:
    if layout is None:
        layout = _any_csv_layout(path, head, options)
    if layout is None:
        return None
    rows = csv.sample(head, layout, is_head=True)[:_MOST]
    present = names_of(rows)
    given = [name.strip() for name in layout.header or ()]
    order = [name for name in dict.fromkeys(given) if name in present]
    order += [name for name in present if name not in order]
    return Table("csv", layout.dialect, order, rows)


def _any_csv_layout(path: str, head: bytes, options: ReadOptions) -> Layout | None:
    """Return the layout of a CSV file, with any columns; None if it has no header."""
    try:
        return csv_layout(path, head, options)
    except InputError:
        if find_late_header(head):
            return None
        dialect, first = widest(head)
    records = list(islice(head_records(head, dialect), 2))
    if not first or header.problem(path, records, dialect.separator, head, options):
        return None
    return Layout("csv", HEADERLESS, header=tuple(first), dialect=dialect)
