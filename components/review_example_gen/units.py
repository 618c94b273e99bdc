"""Units of work: the pieces of an input that one worker reads together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from random import Random
from typing import NamedTuple

from core.progress import Progress
from preprocessing.reading.pieces import Piece
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import Batch

_BYTES_PER_UNIT = 128 << 20
_BYTES_PER_SHARD = 16 << 20
_PIECES_AT_ONCE = 8


BYTES, BYTES_OF_LABELS = "bytes read", "bytes searched for labels"
"""The units of the progress: bytes of the files as they are stored, of all files."""


class Source(NamedTuple):
    """A piece of a file, and the group of the file."""

    group: str
    """`train`, `eval`, `test` or `all`."""
    piece: Piece


class Unit(NamedTuple):
    """A unit of work: its number, and the pieces of files that one worker reads."""

    number: int
    sources: tuple[Source, ...]

    @property
    def shards(self) -> int:
        """The number of shards of each split.

        Fewer shards make larger files, but each shard must be small enough to be shuffled.
        """
        unpacked = sum(source.piece.unpacked for source in self.sources)
        return max(1, round(unpacked / _BYTES_PER_SHARD))


class PieceLines(NamedTuple):
    """The number of lines in a piece of a file."""

    path: str
    """The path of the file."""
    piece: int
    """The number of the piece."""
    lines: int


def in_units(sources: Sequence[Source]) -> list[Unit]:
    """Distribute pieces over units, so that each unit contains pieces from the whole input.

    The input is divided into strata with one piece for each unit. A random generator with a fixed
    seed assigns the pieces of a stratum to the units, and orders the pieces of a unit. Therefore
    each written file contains a mix, even if the input is sorted or periodic.

    Args:
      sources: the pieces of all files, in the order of the input.
    """
    unpacked = sum(source.piece.unpacked for source in sources)
    count = max(1, min(len(sources), round(unpacked / _BYTES_PER_UNIT)))
    chance = Random(0)
    units: list[list[Source]] = [[] for _ in range(count)]
    for start in range(0, len(sources), count):
        stratum = sources[start : start + count]
        for unit, source in zip(chance.sample(units, len(stratum)), stratum, strict=True):
            unit.append(source)
    return [
        Unit(number, tuple(chance.sample(unit, len(unit)))) for number, unit in enumerate(units)
    ]


def read_in_turns(unit: Unit, pool: ThreadPoolExecutor) -> Iterator[tuple[str, Piece, Batch]]:
    """Yield (group, piece, batch) for all batches of a unit.

    Several pieces are open at a time, and their batches alternate.

    Args:
      unit: the pieces to read.
      pool: the threads that decompress the files.

    Raises:
      InputError: a file cannot be read.
    """
    waiting = ((group, piece, read_batches(piece, pool)) for group, piece in unit.sources)
    reading = deque(islice(waiting, _PIECES_AT_ONCE))
    while reading:
        group, piece, batches = reading.popleft()
        batch = next(batches, None)
        if batch is None:
            reading.extend(islice(waiting, 1))
        else:
            reading.append((group, piece, batches))
            yield group, piece, batch


def count_bytes(
    unit: Unit, batches: Iterable[tuple[str, Piece, Batch]], progress: Progress
) -> Iterator[tuple[str, Piece, Batch]]:
    """Yield the batches of a unit, and count the bytes of its files, as they are stored.

    Args:
      unit: the pieces.
      batches: the result of `read_in_turns`.
      progress: the counter of bytes. At the end it has those of all pieces.
    """
    sizes = {piece.key: piece.stored for _, piece in unit.sources}
    read = dict.fromkeys(sizes, 0)
    for group, piece, batch in batches:
        now = max(read[piece.key], min(batch.read, sizes[piece.key]))
        progress.advance(now - read[piece.key])
        read[piece.key] = now
        yield group, piece, batch
    progress.advance(sum(sizes.values()) - sum(read.values()))


def lines_before(pieces: Iterable[PieceLines]) -> dict[tuple[str, int], int]:
    """Return the number of lines before each piece in its file, by (path, number of the piece).

    Args:
      pieces: all pieces, in any order.
    """
    before, path, total = {}, None, 0
    for piece in sorted(pieces):
        if piece.path != path:
            path, total = piece.path, 0
        before[piece.path, piece.piece] = total
        total += piece.lines
    return before
