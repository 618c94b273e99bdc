"""Read review files: fastText, CSV, JSON lines and Parquet, plain or compressed.

Every line (CSV: record, Parquet: row) becomes exactly one `Review`, `Neutral` or `Rejected`;
nothing disappears. What stops the reading of a compressed file is one `Rejected` as well, in
the place of the line that the damage cuts.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

from preprocessing.archives import DecompressedStream
from preprocessing.files import CorruptArchive, file_size, open_bytes
from preprocessing.readers.agreement import decide_layouts, detect_format
from preprocessing.readers.batches import Batch, in_batches, lost_batch, read_piece
from preprocessing.readers.columns import Columns, Layout
from preprocessing.readers.csv_format import read_csv
from preprocessing.readers.detection import FORMATS
from preprocessing.readers.line_formats import PARSERS, read_fasttext, read_jsonl
from preprocessing.readers.parquet_format import read_parquet
from preprocessing.readers.pieces import Piece, cut
from preprocessing.readers.records import (
    BAD_LABEL,
    BROKEN_CSV,
    BROKEN_JSON,
    CORRUPT_ARCHIVE,
    INVALID_UTF8,
    LINE_TOO_LONG,
    NO_TEXT,
    OTHER_SCALE,
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
    "OTHER_SCALE",
    "REASONS",
    "Batch",
    "Columns",
    "Layout",
    "Neutral",
    "Piece",
    "ReadOptions",
    "Record",
    "Rejected",
    "Review",
    "cut",
    "decide_layouts",
    "detect_format",
    "read_batches",
    "read_reviews",
]

_LINE_READERS = {"fasttext": read_fasttext, "jsonl": read_jsonl, "csv": read_csv}


def read_reviews(path: str, options: ReadOptions | None = None) -> Iterator[Record]:
    """Reads one file, in its order; see `detection.inspect` for what is found out by itself.

    Raises:
        InputError: at once, before anything is read; see `decide_layouts`. What is wrong with
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
        yield from _records(path, stream, layout)


def _records(path: str, stream: BinaryIO, layout: Layout) -> Iterator[Record]:
    if layout.format == "parquet":
        return read_parquet(path, stream, layout)
    return _LINE_READERS[layout.format](stream, layout)


def read_batches(piece: Piece, pool: ThreadPoolExecutor) -> Iterator[Batch]:
    """Reads a piece of a file: the same reviews and rejected lines as `read_reviews`, in columns.

    Where a bz2 file of lines is damaged, it goes on behind the damage.

    Args:
      piece: one of `cut`.
      pool: threads that decompress.
    """
    path, layout = piece.path, piece.layout
    if layout.format in PARSERS:
        yield from read_piece(piece, pool)
        return
    try:
        stream = open_bytes(path)
    except CorruptArchive:
        yield from in_batches(_read(path, layout))
        return
    with stream:
        yield from in_batches(_records(path, stream, layout))
        if isinstance(stream, DecompressedStream) and stream.damage:
            yield lost_batch(file_size(path) - stream.damage.position)
