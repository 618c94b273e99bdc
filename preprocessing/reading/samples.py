"""Samples of a file behind its head, because the head of a sorted file has only one label."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, takewhile

from preprocessing.reading.archives import MAGIC_BYTES, compression
from preprocessing.reading.columns import Dialect, Layout
from preprocessing.reading.files import file_size, open_raw
from preprocessing.reading.formats.csv import sampled_records
from preprocessing.reading.lines import Lines, split_lines
from preprocessing.reading.pieces import Piece, decompress

_PLACES = 8
_BYTES = 1 << 16
_BZ2_PLACES = 3
_LAST_BZ2_BYTES = 1 << 20
"""Bytes at the end of a bz2 file that are read. They contain the start of the last block."""


def samples(path: str) -> Iterator[bytes]:
    """Yield complete lines from places all over a file, including its end.

    A gzip or zstd file yields nothing, because it can only be read from its start.
    """
    with open_raw(path) as raw:
        packed = compression(path, raw.read(MAGIC_BYTES))
    if packed not in (None, "bz2"):
        return
    size, places = file_size(path), _BZ2_PLACES if packed else _PLACES
    with ThreadPoolExecutor(1) as pool:
        for place in range(1, places + 1):
            is_last = place == places
            start, end = size * place // places - _BYTES, size * place // places
            if packed:
                start, end = size - _LAST_BZ2_BYTES if is_last else end, size
            piece = Piece(path, Layout("empty"), 0, max(1, start), end, bool(packed), 0)
            found = split_lines(decompress(piece, pool), piece.start)
            lines = (item.data for item in found if isinstance(item, Lines))
            # Of a bz2 file a place is one block.
            yield from islice(lines, None if is_last else 1)


def csv_sample(lines: bytes, width: int, dialect: Dialect) -> list[list[str]]:
    """Return the records with `width` fields in lines from the middle of a CSV file.

    It is unknown whether the first line is inside a quoted field. So the lines are parsed under
    both assumptions. The last records, as far as both results agree, are returned.
    """
    outside = _records(lines, width, dialect)
    if not dialect.quoted or b'"' not in lines:
        return outside
    both = zip(reversed(outside), reversed(_records(b'"' + lines, width, dialect)), strict=False)
    return [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], both)]


def _records(lines: bytes, width: int, dialect: Dialect) -> list[list[str]]:
    records = sampled_records(lines, dialect, is_head=False)
    return [fields for fields in records if len(fields) == width]
