"""The index of a unit: what decides about each of its reviews later, without the texts."""

from __future__ import annotations

import io
from typing import NamedTuple

import numpy as np
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen.splits import AssignedBatch, assign_shards
from preprocessing.reading.pieces import Piece


class UnitIndex(NamedTuple):
    """The reviews of a unit in the order in which they were read and written."""

    keys: np.ndarray
    """The `splits.text_keys`, uint64 [reviews]."""
    labels: np.ndarray
    """The indices of the classes, int32 [reviews]."""
    pieces: np.ndarray
    """The index of the piece of each review in `UnitResult.pieces`, int32 [reviews]."""
    positions: np.ndarray
    """The positions of the reviews in their pieces, see `Batch.positions`, int64 [reviews]."""
    shards: np.ndarray
    """The shard of each review in its split, int32 [reviews]."""


class IndexWriter:
    """The index of a unit that is being read.

    Args:
      shards: number of shards of each split.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self._pieces: dict[tuple[str, int], int] = {}
        self._parts: list[UnitIndex] = []

    def add(self, piece: Piece, assigned: AssignedBatch) -> None:
        """Append the reviews of a batch.

        Args:
          piece: the piece of a file that contains the batch.
          assigned: the batch.
        """
        number = self._pieces.setdefault(piece.key, len(self._pieces))
        batch = assigned.batch
        self._parts.append(
            UnitIndex(
                assigned.keys,
                np.asarray(batch.labels, np.int32),
                np.full(len(assigned.keys), number, np.int32),
                np.asarray(batch.positions, np.int64),
                assign_shards(assigned.keys, self._shards).astype(np.int32),
            )
        )

    def save(self, path: str) -> None:
        """Write the index to a file, local or remote.

        Raises:
          OSError: the file cannot be written.
        """
        empty = UnitIndex(*(np.zeros(0, kind) for kind in ("<u8", "<i4", "<i4", "<i8", "<i4")))
        index = UnitIndex(*map(np.concatenate, zip(empty, *self._parts, strict=True)))
        stream = io.BytesIO()
        np.savez(
            stream,
            keys=index.keys,
            labels=index.labels,
            pieces=index.pieces,
            positions=index.positions,
            shards=index.shards,
        )
        with FileSystems.create(path) as target:
            target.write(stream.getvalue())


def load_index(path: str) -> UnitIndex:
    """Return an index that `IndexWriter.save` wrote.

    Args:
      path: the file, local or remote.

    Raises:
      OSError: the file cannot be read.
    """
    with FileSystems.open(path) as source:
        arrays = np.load(io.BytesIO(source.read()))
    return UnitIndex(*(arrays[name] for name in UnitIndex._fields))
