"""Decompress a piece of a file, and the content that follows the piece."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from preprocessing.fast import bz2_blocks
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.cut import Piece
from preprocessing.reading.files import file_size, open_bytes, open_raw

_READ = 1 << 20
_BLOCKS_AHEAD = 6


class Chunk(NamedTuple):
    """Decompressed content; `own` is False for content that follows the piece in the file."""

    data: bytes
    own: bool


class Damage(NamedTuple):
    """A damaged part of an archive.

    Attributes:
      error: what is wrong and where.
      lost: the size of the part in (compressed) bytes of the file.
      own: whether the part is in the piece itself.
    """

    error: CorruptArchive
    lost: int
    own: bool


def decompress(piece: Piece, pool: ThreadPoolExecutor) -> Iterator[Chunk | Damage]:
    """Yield the content of a piece, and then the content that follows the piece in the file.

    The last line of a piece may end behind the piece. The caller stops at the end of this line.

    Args:
      piece: a piece of a file of lines.
      pool: the threads that decompress bz2.
    """
    if piece.end is None:
        return _whole(piece)
    return _bz2(piece, piece.end, pool) if piece.is_bz2 else _plain(piece, piece.end)


def _whole(piece: Piece) -> Iterator[Chunk | Damage]:
    try:
        with open_bytes(piece.path) as stream:
            while data := stream.read(_READ):
                yield Chunk(data, True)
    except CorruptArchive as error:
        yield Damage(error, max(0, file_size(piece.path) - error.position), True)


def _plain(piece: Piece, end: int) -> Iterator[Chunk | Damage]:
    with open_raw(piece.path) as raw:
        raw.seek(piece.start)
        left = end - piece.start
        while data := raw.read(min(_READ, left) if left else _READ):
            yield Chunk(data, left > 0)
            left = max(0, left - len(data))


def _bz2(piece: Piece, end: int, pool: ThreadPoolExecutor) -> Iterator[Chunk | Damage]:
    with open_raw(piece.path) as raw:
        for block in bz2_blocks.read_blocks(raw, piece.start, pool, _BLOCKS_AHEAD):
            own = block.at < end * 8
            if isinstance(block, bz2_blocks.Content):
                yield Chunk(block.data, own)
            else:
                error = CorruptArchive(piece.path, block.position, block.why)
                yield Damage(error, block.lost, own)
