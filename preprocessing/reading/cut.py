"""Cut files of lines into pieces that workers read independently, in any order.

A file can be cut at any byte; a line belongs to the piece in which it begins. A bz2 file can be cut
as well (see `preprocessing.fast.bz2_blocks`); a gzip or zstd file can only be read from its start.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from preprocessing.reading.archives import MAGIC_BYTES, CorruptArchive, compression
from preprocessing.reading.columns import Layout
from preprocessing.reading.files import file_size, open_raw

LINE_FORMATS = ("fasttext", "jsonl")
"""The formats with one review on each line, whose files can be cut."""

_BZ2_BYTES = 8 << 20
"""Compressed bytes of a piece. A worker also reads one block of the next piece: about 3 % more."""
_PLAIN_BYTES = 32 << 20
_UNPACKED = {None: 1.0, "bz2": 3.6, "gzip": 2.8, "zstd": 3.0}
"""Compression -> size of review text divided by the size of its archive."""


class Piece(NamedTuple):
    """Lines that begin in the bytes `start` to `end` of a file, or a whole file (`end` is None).

    `number` counts the pieces of a file from 0; `unpacked` estimates the bytes of its lines.
    """

    path: str
    layout: Layout
    number: int
    start: int
    end: int | None
    is_bz2: bool
    unpacked: int


def cut_file(path: str, layout: Layout) -> list[Piece]:
    """Return the pieces of a file in their order; a file that cannot be cut is one piece.

    Raises:
      InputError: the file cannot be opened.
    """
    size = file_size(path)
    try:
        with open_raw(path) as raw:
            packed = compression(path, raw.read(MAGIC_BYTES))
    except CorruptArchive:
        return [Piece(path, layout, 0, 0, None, False, size)]
    factor = 2.0 if layout.format == "parquet" else _UNPACKED[packed]
    if layout.format not in LINE_FORMATS or packed not in (None, "bz2"):
        return [Piece(path, layout, 0, 0, None, False, int(size * factor))]
    count = max(1, round(size / (_BZ2_BYTES if packed else _PLAIN_BYTES)))
    edges = [size * index // count for index in range(count + 1)]
    return [
        Piece(path, layout, number, start, end, bool(packed), int((end - start) * factor))
        for number, (start, end) in enumerate(pairwise(edges))
    ]
