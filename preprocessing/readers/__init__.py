"""Read review files: fastText, CSV, JSON lines and Parquet, plain or compressed.

Every line (CSV: record, Parquet: row) becomes exactly one `Review`, `Neutral` or `Rejected`;
nothing disappears. What stops the reading of a compressed file is one `Rejected` as well, in
the place of the line that the damage cuts.
"""

from __future__ import annotations

from collections.abc import Iterator

from preprocessing.files import CorruptArchive, open_bytes
from preprocessing.readers.columns import Columns, Layout
from preprocessing.readers.csv_format import read_csv
from preprocessing.readers.detection import FORMATS, detect_format
from preprocessing.readers.line_formats import read_fasttext, read_jsonl
from preprocessing.readers.parquet_format import read_parquet
from preprocessing.readers.records import (
    BAD_LABEL,
    BROKEN_CSV,
    BROKEN_JSON,
    CORRUPT_ARCHIVE,
    INVALID_UTF8,
    LINE_TOO_LONG,
    NO_TEXT,
    REASONS,
    Neutral,
    ReadOptions,
    Record,
    Rejected,
    Review,
    rejected,
)

__all__ = [
    "BAD_LABEL",
    "BROKEN_CSV",
    "BROKEN_JSON",
    "CORRUPT_ARCHIVE",
    "FORMATS",
    "INVALID_UTF8",
    "LINE_TOO_LONG",
    "NO_TEXT",
    "REASONS",
    "Columns",
    "Layout",
    "Neutral",
    "ReadOptions",
    "Record",
    "Rejected",
    "Review",
    "detect_format",
    "read_reviews",
]

_LINE_READERS = {"fasttext": read_fasttext, "jsonl": read_jsonl, "csv": read_csv}


def read_reviews(path: str, options: ReadOptions | None = None) -> Iterator[Record]:
    """Reads one file, in its order; see `detect_format` for what is found out by itself.

    Raises:
        InputError: at once, before anything is read; see `detect_format`. What is wrong with
            single lines does not raise, it is `Rejected`.
    """
    return _read(path, detect_format(path, options or ReadOptions()))


def _read(path: str, layout: Layout) -> Iterator[Record]:
    try:
        stream = open_bytes(path)
    except CorruptArchive as damage:
        yield rejected(1, CORRUPT_ARCHIVE, damage.detail)
        return
    with stream:
        if layout.format == "parquet":
            yield from read_parquet(path, stream, layout)
        else:
            yield from _LINE_READERS[layout.format](stream, layout)
