"""Files of lines cut into pieces that any worker reads on its own, in any order.

A file is cut at any byte, and a line belongs to the piece in which it begins. bz2 is cut as well
(see `bz2_blocks`); gzip and zstd are streams that have to be read from their beginning.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

from preprocessing import bz2_blocks
from preprocessing.archives import MAGIC_BYTES, compression
from preprocessing.errors import CorruptArchive
from preprocessing.files import MAX_LINE_BYTES, file_size, open_bytes, open_raw
from preprocessing.readers.columns import Layout
from preprocessing.readers.line_formats import PARSERS, TOO_LONG
from preprocessing.readers.records import CORRUPT_ARCHIVE, LINE_TOO_LONG, Rejected, rejected

_BZ2_BYTES = 8 << 20
"""Of a file, for a piece. It reads a block of the piece after it too, about 3 % of that."""
_PLAIN_BYTES = 32 << 20
_READ = 1 << 20
_BLOCKS_AHEAD = 6


class Piece(NamedTuple):
    """Lines that begin in the bytes `start` to `end` of a file, or a whole file (`end` is None).

    `number` counts the pieces of a file from 0; `unpacked` is about how many bytes its lines have.
    """

    path: str
    layout: Layout
    number: int
    start: int
    end: int | None
    is_bz2: bool
    unpacked: int


class Lines(NamedTuple):
    """Whole lines, without the last line break, and the number of the first one in its piece."""

    first: int
    data: bytes


class Damaged(NamedTuple):
    """What stands for a stretch of an archive that is lost, and its size in bytes of the file."""

    record: Rejected
    lost: int


class _Part(NamedTuple):
    """Some content, from the piece itself or from what comes after it."""

    data: bytes
    own: bool


_UNPACKED = {None: 1.0, "bz2": 3.6, "gzip": 2.8, "zstd": 3.0}
"""How many times larger review text is than a file that is so compressed."""


def cut(path: str, layout: Layout) -> list[Piece]:
    """The pieces of a file, in its order; one if it cannot be cut.

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
    if layout.format not in PARSERS or packed not in (None, "bz2"):
        return [Piece(path, layout, 0, 0, None, False, int(size * factor))]
    count = max(1, round(size / (_BZ2_BYTES if packed else _PLAIN_BYTES)))
    edges = [size * index // count for index in range(count + 1)]
    return [
        Piece(path, layout, number, start, end, bool(packed), int((end - start) * factor))
        for number, (start, end) in enumerate(pairwise(edges))
    ]


def read_lines(piece: Piece, pool: ThreadPoolExecutor) -> Iterator[Lines | Rejected | Damaged]:
    """Every line of a piece of a file of lines, many at a time; numbers count from 1.

    A line that is too long is `Rejected`, and not held in memory. Damage takes the place of one
    line, and ends what can be read of a gzip or zstd file.
    """
    number = 0
    tail: bytes | None = b""  # the line that is not at its end yet; None once it is too long
    skipping = piece.start > 0  # to where a line begins
    for part in _content(piece, pool):
        if part is None:
            return  # the last line is cut; the next piece tells of the damage
        if isinstance(part, Damaged):
            number += 1
            yield part._replace(record=part.record._replace(position=number))
            tail, skipping = b"", True
            continue
        data = part.data
        if skipping:
            if not part.own:
                return  # the line that goes on here began before this piece
            start = data.find(b"\n") + 1
            if not start:
                continue
            data, skipping = data[start:], False
        end = data.rfind(b"\n") if part.own else data.find(b"\n")
        if end < 0:
            tail = _within(tail, data)
            continue
        if tail is None:
            number += 1
            yield rejected(number, LINE_TOO_LONG, TOO_LONG)
            start = data.find(b"\n") + 1
            data, end, tail = data[start:], end - start, b""
        if end >= 0:
            found = tail + data[:end]
            if not number and not piece.start:
                found = found.removeprefix(codecs.BOM_UTF8)
            yield Lines(number + 1, found)
            number += 1 + found.count(b"\n")
        if not part.own:
            return
        tail = _within(b"", data[end + 1 :])
    if tail is None:
        yield rejected(number + 1, LINE_TOO_LONG, TOO_LONG)
    elif tail:
        yield Lines(number + 1, tail if number or piece.start else _without_bom(tail))


def _within(tail: bytes | None, more: bytes) -> bytes | None:
    if tail is None or len(tail) + len(more) > MAX_LINE_BYTES + 1:
        return None
    return tail + more


def _without_bom(data: bytes) -> bytes:
    return data.removeprefix(codecs.BOM_UTF8)


def _content(piece: Piece, pool: ThreadPoolExecutor) -> Iterator[_Part | Damaged | None]:
    """What is in a piece and then, not its own, what follows, as far as it is asked for.

    None is damage that is not its own.
    """
    if piece.end is None:
        return _stream(piece)
    return _blocks(piece, pool) if piece.is_bz2 else _bytes(piece)


def _stream(piece: Piece) -> Iterator[_Part | Damaged | None]:
    try:
        with open_bytes(piece.path) as stream:
            while data := stream.read(_READ):
                yield _Part(data, True)
    except CorruptArchive as damage:
        yield _damaged(damage, max(0, file_size(piece.path) - damage.position))


def _bytes(piece: Piece) -> Iterator[_Part | Damaged | None]:
    assert piece.end is not None
    with open_raw(piece.path) as raw:
        raw.seek(piece.start)
        left = piece.end - piece.start
        while data := raw.read(min(_READ, left) if left else _READ):
            yield _Part(data, left > 0)
            left = max(0, left - len(data))


def _blocks(piece: Piece, pool: ThreadPoolExecutor) -> Iterator[_Part | Damaged | None]:
    assert piece.end is not None
    with open_raw(piece.path) as raw:
        for block in bz2_blocks.read_blocks(raw, piece.start, pool, _BLOCKS_AHEAD):
            own = block.at < piece.end * 8
            if isinstance(block, bz2_blocks.Content):
                yield _Part(block.data, own)
            elif own:
                damage = CorruptArchive(piece.path, block.position, block.why)
                yield _damaged(damage, block.lost)
            else:
                yield None


def _damaged(damage: CorruptArchive, lost: int) -> Damaged:
    return Damaged(rejected(1, CORRUPT_ARCHIVE, damage.detail), lost)
