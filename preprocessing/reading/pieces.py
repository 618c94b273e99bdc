"""Cut files into pieces that workers read independently, decompress them and split their lines.

A file can be cut at any byte; a line belongs to the piece in which it begins. A bz2 file can be cut
as well (see `preprocessing.fast.bz2_blocks`); a gzip or zstd file can only be read from its start.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import BinaryIO, NamedTuple

from preprocessing.fast import bz2_blocks
from preprocessing.reading.archives import CorruptArchive, DecompressedStream
from preprocessing.reading.columns import Layout
from preprocessing.reading.open_files import file_compression, file_size, open_bytes, open_raw
from preprocessing.reading.records import CORRUPT_ARCHIVE, LINE_TOO_LONG, Rejected, rejected

LINE_FORMATS = ("fasttext", "jsonl")
"""The formats with one review on each line, whose files can be cut."""

_BZ2_BYTES = 8 << 20
"""Compressed bytes of a piece. A worker also reads one block of the next piece, about 3 % more."""
_PLAIN_BYTES = 32 << 20
_UNPACKED = {None: 1.0, "bz2": 3.6, "gzip": 2.8, "zstd": 3.0}
"""Compression -> size of review text divided by the size of its archive."""
_MANY_BLOCKS = 32 << 20
"""Compressed bytes of a bz2 file from which on compiled loops decompress its pieces."""
_READ = 1 << 20
_BLOCKS_AHEAD = 6
MAX_LINE_BYTES = 1 << 20
_MARKS = re.compile(rb"^(?:%s)+" % codecs.BOM_UTF8, re.MULTILINE)
_FILLED_RUNS = re.compile(rb"\0{512,}|\xff{512,}")
TOO_LONG = f"more than {MAX_LINE_BYTES:,} bytes"


class Piece(NamedTuple):
    """Lines that begin in the bytes `start` to `end` of a file, or a whole file (`end` is None).

    `number` counts the pieces of a file from 0; `unpacked` estimates the decompressed bytes. If the
    file has `many_blocks` of bz2, it is worth the time to load the compiled loops.
    """

    path: str
    layout: Layout
    number: int = 0
    start: int = 0
    end: int | None = None
    is_bz2: bool = False
    unpacked: int = 0
    many_blocks: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """The path of the file and the number of the piece, which no other piece has."""
        return self.path, self.number

    @property
    def stored(self) -> int:
        """The (compressed) bytes of the piece."""
        return file_size(self.path) if self.end is None else self.end - self.start


def cut_file(path: str, layout: Layout) -> list[Piece]:
    """Return the pieces of a file in their order; a file that cannot be cut is one piece.

    Args:
      path: path or URL of the file.
      layout: its layout.

    Raises:
      InputError: the file cannot be opened.
    """
    size, packed = file_size(path), file_compression(path)
    factor = 2.0 if layout.format == "parquet" else _UNPACKED[packed]
    if layout.format not in LINE_FORMATS or packed not in (None, "bz2") or not size:
        return [Piece(path, layout, unpacked=int(size * factor))]
    count = max(1, round(size / (_BZ2_BYTES if packed else _PLAIN_BYTES)))
    edges = [size * index // count for index in range(count + 1)]
    many = bool(packed) and size >= _MANY_BLOCKS
    return [
        Piece(path, layout, number, start, end, bool(packed), int((end - start) * factor), many)
        for number, (start, end) in enumerate(pairwise(edges))
    ]


class Chunk(NamedTuple):
    """Decompressed content, or a damaged part of an archive, which has no content."""

    data: bytes
    own: bool  # False for a part of the file after the piece
    damage: str | None = None  # the problem and its position
    lost: int = 0  # the size of the damaged part in (compressed) bytes of the file
    read: int = 0  # (compressed) bytes of the piece that were read so far


def decompress(piece: Piece, pool: ThreadPoolExecutor) -> Iterator[Chunk]:
    """Yield the content of a piece of lines, and then the content of the file after the piece.

    The last line of a piece may end after the piece. The caller stops at the end of this line.
    Damage is reported as a chunk without content, not as an exception.

    Args:
      piece: the piece.
      pool: the threads that decompress a bz2 file.

    Raises:
      InputError: the file cannot be opened.
      OSError: the file cannot be read. A remote file raises the errors of its file system in Beam.
    """
    if piece.end is None:
        return _whole(piece)
    return _bz2(piece, piece.end, pool) if piece.is_bz2 else _plain(piece, piece.end)


def bytes_read(stream: BinaryIO) -> int:
    """Return the number of bytes that were read of a file, as it is stored.

    Args:
      stream: the result of `open_files.open_bytes`.
    """
    return stream.stored() if isinstance(stream, DecompressedStream) else stream.tell()


def _whole(piece: Piece) -> Iterator[Chunk]:
    try:
        with open_bytes(piece.path) as stream:
            while data := stream.read(_READ):
                yield Chunk(data, True, read=bytes_read(stream))
    except CorruptArchive as error:
        yield Chunk(b"", True, error.detail, file_size(piece.path) - error.delivered)


def _plain(piece: Piece, end: int) -> Iterator[Chunk]:
    with open_raw(piece.path) as raw:
        raw.seek(piece.start)
        left = end - piece.start
        while data := raw.read(min(_READ, left) if left else _READ):
            yield Chunk(data, left > 0, read=end - piece.start - left)
            left = max(0, left - len(data))


def _bz2(piece: Piece, end: int, pool: ThreadPoolExecutor) -> Iterator[Chunk]:
    with open_raw(piece.path) as raw:
        for block in bz2_blocks.read_blocks(
            raw, piece.start, pool, _BLOCKS_AHEAD, compiled=piece.many_blocks
        ):
            own = block.at < end * 8
            if block.damage is None:
                # A block of one repeated byte may have 45 MB.
                for at in range(0, len(block.data), _READ):
                    read = max(0, block.at // 8 - piece.start)
                    yield Chunk(block.data[at : at + _READ], own, read=read)
            else:
                error = CorruptArchive(piece.path, block.position, block.damage)
                yield Chunk(b"", own, error.detail, block.lost)


class Lines(NamedTuple):
    """Complete lines without the last line break; `first` is the number of the first line."""

    first: int
    data: bytes


class Lost(NamedTuple):
    """A line that cannot be read, or a damaged part, which counts as one line."""

    record: Rejected
    bytes: int  # of the damage in the (compressed) file, or of the content of the line


def split_lines(chunks: Iterable[Chunk], start: int) -> Iterator[Lines | Lost]:
    """Yield every line of a piece, many at a time, with its number in the piece, from 1.

    A line that is too long is lost, and is not kept in memory. A damaged part counts as one lost
    line.

    Args:
      chunks: the chunks of `decompress`, none longer than `MAX_LINE_BYTES`.
      start: the byte of the file at which the piece starts.
    """
    number = 0
    tail: bytes | None = b""  # the unfinished line so far; None once it is too long
    size = 0  # bytes of the unfinished line so far
    skipping = start > 0  # whether to skip the content before the next line
    for chunk in chunks:
        if chunk.damage is not None:
            if not chunk.own:
                return  # the damage cuts the last line; the next piece reports the damage
            number += 1
            yield Lost(rejected(number, CORRUPT_ARCHIVE, chunk.damage), chunk.lost)
            tail, size, skipping = b"", 0, True
            continue
        data = chunk.data
        if skipping:
            if not chunk.own:
                return  # this line began before the piece
            begins = data.find(b"\n") + 1
            if not begins:
                continue
            data, skipping = data[begins:], False
        end = data.rfind(b"\n") if chunk.own else data.find(b"\n")
        if end < 0:
            tail = _joined(tail, data)
            size += len(data)
            continue
        first = data.find(b"\n")
        if tail is None or _is_long(tail + data[:first]):
            number += 1
            yield Lost(rejected(number, LINE_TOO_LONG, TOO_LONG), size + first)
            data, end, tail = data[first + 1 :], end - first - 1, b""
        if end >= 0:
            found = tail + data[:end]
            yield Lines(number + 1, found)
            number += 1 + found.count(b"\n")
        if not chunk.own:
            return
        tail = _joined(b"", data[end + 1 :])
        size = len(data) - end - 1
    if tail is None or _is_long(tail):
        yield Lost(rejected(number + 1, LINE_TOO_LONG, TOO_LONG), size)
    elif tail:
        yield Lines(number + 1, tail)


def without_marks(lines: bytes) -> bytes:
    """Return lines without the byte order marks at their starts.

    In a file that was joined from several, each of them may have begun with such a mark.

    Args:
      lines: complete lines, of a file in which no record spans lines.
    """
    return _MARKS.sub(b"", lines) if codecs.BOM_UTF8 in lines else lines


def count_filled(data: bytes) -> int:
    """Return the number of bytes in long runs of NUL or 0xFF, as in a partly written file.

    Empty blocks of a disk are NUL, and erased flash memory is 0xFF, which UTF-8 does not contain.
    """
    if b"\0" not in data and b"\xff" not in data:
        return 0
    return sum(len(run) for run in _FILLED_RUNS.findall(data))


def _is_long(line: bytes) -> bool:
    return len(line.removesuffix(b"\r")) > MAX_LINE_BYTES


def _joined(tail: bytes | None, more: bytes) -> bytes | None:
    if tail is None or len(tail) + len(more) > MAX_LINE_BYTES + 1:
        return None
    return tail + more
