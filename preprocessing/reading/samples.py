"""Samples of a file behind its head, because the head of a sorted file has only one label."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, takewhile
from typing import BinaryIO

from preprocessing.fast import bz2_blocks
from preprocessing.reading.archives import MAGIC_BYTES, CorruptArchive, compression
from preprocessing.reading.columns import Dialect
from preprocessing.reading.files import open_raw
from preprocessing.reading.formats.csv import sampled_records

_PLACES = 8
_BYTES = 1 << 16
_BZ2_PLACES = 3
_LAST_BZ2_BYTES = 1 << 20
"""Bytes at the end of a bz2 file that are searched. They contain the start of the last block."""


def samples(path: str) -> Iterator[bytes]:
    """Yield complete lines from places all over a file, including its end.

    A gzip or zstd file yields nothing, because it can only be read from its start.
    """
    try:
        with open_raw(path) as raw:
            packed = compression(path, raw.read(MAGIC_BYTES))
            size = raw.seek(0, os.SEEK_END)
            if packed is None:
                pieces = _plain(raw, size)
            elif packed == "bz2":
                pieces = _bz2(raw, size)
            else:
                return
            for piece in pieces:
                start, end = piece.find(b"\n") + 1, piece.rfind(b"\n") + 1
                yield piece[start:end]
    except CorruptArchive:
        return


def _plain(raw: BinaryIO, size: int) -> Iterator[bytes]:
    for place in range(1, _PLACES + 1):
        start = max(0, size * place // _PLACES - _BYTES)
        raw.seek(start)
        # The file's last line may end without a line break.
        yield raw.read(_BYTES) + (b"\n" if place == _PLACES else b"")


def _bz2(raw: BinaryIO, size: int) -> Iterator[bytes]:
    with ThreadPoolExecutor(1) as pool:
        for place in range(1, _BZ2_PLACES + 1):
            is_last = place == _BZ2_PLACES
            start = size - _LAST_BZ2_BYTES if is_last else size * place // _BZ2_PLACES
            blocks = bz2_blocks.read_blocks(raw, max(0, start), pool, 0)
            found = [
                block.data
                for block in islice(blocks, None if is_last else 1)
                if isinstance(block, bz2_blocks.Content)
            ]
            yield b"".join(found) + (b"\n" if is_last else b"")


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
    return [fields for fields in sampled_records(lines, dialect) if len(fields) == width]
