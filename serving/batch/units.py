"""Divide the input into units of work, in the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from preprocessing.reading.pieces import Piece

_BYTES_PER_UNIT = 64 << 20
"""Estimated bytes of text. A killed run repeats at most its unfinished units."""


class Unit(NamedTuple):
    """Consecutive pieces of the input. `number` counts the units from 0."""

    number: int
    pieces: tuple[Piece, ...]

    @property
    def bytes(self) -> int:
        """The estimated bytes of its text."""
        return sum(piece.unpacked for piece in self.pieces)


def in_units(pieces: Iterable[Piece]) -> Iterator[Unit]:
    """Yield units of whole pieces; a file that cannot be cut is a single piece."""
    number = size = 0
    pending: list[Piece] = []
    for piece in pieces:
        if pending and size + piece.unpacked > _BYTES_PER_UNIT:
            yield Unit(number, tuple(pending))
            number, size, pending = number + 1, 0, []
        pending.append(piece)
        size += piece.unpacked
    if pending:
        yield Unit(number, tuple(pending))
