"""The function that Beam calls for each unit of ReviewExampleGen: read and write its lines.

A line becomes an Example of its split, is counted as neutral or as over a limit, or is written to
the rejected lines with a reason.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from apache_beam.io.filesystems import FileSystems

from components.line_counts import DUPLICATE, SPLITS, LineCounts
from components.review_example_gen.splits import (
    AssignedBatch,
    HeldOut,
    Limits,
    Splitting,
    are_over,
    assign_batch,
    assign_shards,
    count_batch,
)
from components.review_example_gen.unit_index import IndexWriter
from components.review_example_gen.units import (
    BYTES,
    PieceLines,
    Unit,
    count_bytes,
    read_in_turns,
)
from core.machine import cores
from core.progress import Progress
from examples.writer import ShardWriter, text_level
from preprocessing.fast.encode import encode_examples
from preprocessing.reading.pieces import Piece


class Shard(NamedTuple):
    """A finished file of Examples, which is not published yet."""

    split: str
    path: str
    examples: int
    """The number of its Examples."""


class UnitResult(NamedTuple):
    """The files that were written for a unit, and the counts of its lines."""

    unit: int
    shards: Sequence[Shard]
    rejected: str
    """Path of the file of rejected lines. Positions in it are relative to the piece of the file."""
    counts: Mapping[str, LineCounts]
    """Path of a file -> the counts of its lines in the unit."""
    classes: Mapping[str, Counter[int]]
    """Split -> label -> number of its Examples."""
    pieces: Sequence[PieceLines]
    """The pieces of the unit, in the order in which they were read."""
    index_file: str = ""
    """Path of the `unit_index.UnitIndex` of the unit; empty if it was not written."""

    def to_json(self) -> list[Any]:
        """Return a list for JSON. Its first element is the number of the unit, for sorting."""
        counts = {path: of_file.to_file() for path, of_file in self.counts.items()}
        # JSON has no keys that are numbers.
        classes = {split: list(found.items()) for split, found in self.classes.items()}
        shards, pieces = list(map(list, self.shards)), list(map(list, self.pieces))
        return [self.unit, shards, self.rejected, counts, classes, pieces, self.index_file]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> UnitResult:
        """Return the result that `to_json` converted.

        Args:
          stored: the result of `to_json`.

        Raises:
          ValueError: `stored` has another form.
        """
        unit, shards, rejected, by_file, by_split, pieces, index_file = stored
        classes = {split: Counter(dict(found)) for split, found in by_split.items()}
        counts = {path: LineCounts.from_file(of_file) for path, of_file in by_file.items()}
        return cls(
            unit,
            [Shard(*shard) for shard in shards],
            rejected,
            counts,
            classes,
            [PieceLines(*piece) for piece in pieces],
            index_file,
        )


def read_unit(
    unit: Unit,
    held_out: HeldOut,
    limits: Limits,
    splitting: Splitting,
    scratch: str,
    is_indexed: bool = False,
) -> Iterator[list[Any]]:
    """Read every line of a unit, assign its split, encode it and write it.

    Args:
      unit: the pieces of files to read.
      held_out: the text keys of the reviews in the files of held-out groups.
      limits: the number of ranges of text keys that each limited split keeps.
      splitting: how the splits are made.
      scratch: the folder of the files that are written, local or remote.
      is_indexed: whether the index of the unit is written too.

    Yields:
      One element, the JSON of a `UnitResult`.

    Raises:
      InputError: a file cannot be read.
      OSError, tensorflow.errors.OpError: a file cannot be written.
    """
    # The name is unique, so a bundle that Beam retries leaves only unused files.
    name = FileSystems.join(scratch, f"{unit.number:05d}-{uuid.uuid4().hex}")
    lines: Counter[tuple[str, int]] = Counter()
    index = IndexWriter(unit.shards)
    with (
        ThreadPoolExecutor(cores()) as pool,
        Progress(BYTES, str(unit.number)) as size,
        Progress("texts read", str(unit.number)) as progress,
        FileSystems.create(f"{name}.jsonl") as rejected,
    ):
        output = UnitOutput(name, unit.shards, rejected, pool)
        for group, piece, batch in count_bytes(unit, read_in_turns(unit, pool), size):
            assigned = assign_batch(batch, group, splitting, held_out)
            over = are_over(assigned.keys, assigned.split, limits)
            output.add(piece, assigned, over)
            if is_indexed:
                index.add(piece, assigned)
            lines[piece.key] += batch.lines
            progress.advance(batch.lines)
        shards = output.close()
    pieces = [PieceLines(*key, count) for key, count in lines.items()]
    index_file = f"{name}.npz" if is_indexed else ""
    if is_indexed:
        index.save(index_file)
    result = UnitResult(
        unit.number, shards, f"{name}.jsonl", output.counts, output.classes, pieces, index_file
    )
    yield result.to_json()


class UnitOutput:
    """The open files of a unit.

    Args:
      name: the beginning of the path of each shard.
      shards: number of shards of each split.
      rejected: a binary file for the rejected lines.
      pool: the threads that compress the shards.

    Attributes:
      counts: path of a file -> the counts of its lines so far.
      classes: split -> label -> number of its Examples so far.
    """

    def __init__(self, name: str, shards: int, rejected: Any, pool: ThreadPoolExecutor):
        self._name = name
        self._shards = shards
        self._rejected = rejected
        self._pool = pool
        self._open: dict[tuple[str, int], ShardWriter] = {}
        self.counts: dict[str, LineCounts] = {}
        self.classes: dict[str, Counter[int]] = {split: Counter() for split in SPLITS}

    def add(self, piece: Piece, assigned: AssignedBatch, over: np.ndarray) -> None:
        """Write a batch and count its lines.

        Args:
          piece: the piece of a file that contains the batch.
          assigned: the batch.
          over: whether each review is over the limit of its split, bool [reviews].

        Raises:
          OSError, tensorflow.errors.OpError: a file cannot be written.
        """
        self._write_examples(assigned, (assigned.duplicate_in == "") & ~over)
        self._write_rejected(piece, assigned)
        counts = count_batch(assigned, over)
        self.counts[piece.path] = self.counts.get(piece.path, LineCounts()) + counts

    def _write_rejected(self, piece: Piece, assigned: AssignedBatch) -> None:
        """Write the rejected lines and the duplicates of a batch."""
        batch = assigned.batch
        found = [(item.position, item.reason, item.detail) for item in batch.rejected]
        for index in np.flatnonzero(assigned.duplicate_in != "").tolist():
            detail = f"the same text is in the {assigned.duplicate_in[index]} files"
            found.append((batch.positions[index], DUPLICATE, detail))
        for position, reason, detail in sorted(found):
            line = json.dumps([piece.path, piece.number, position, reason, detail])
            self._rejected.write(line.encode() + b"\n")

    def _write_examples(self, assigned: AssignedBatch, chosen: np.ndarray) -> None:
        """Write the chosen reviews of a batch."""
        examples = encode_examples(assigned.batch.columns)
        shard = assign_shards(assigned.keys, self._shards)
        all_labels = np.asarray(assigned.batch.labels)
        for split in SPLITS:
            of_split = chosen & (assigned.split == split)
            labels, numbers = np.unique(all_labels[of_split], return_counts=True)
            self.classes[split].update(dict(zip(labels.tolist(), numbers.tolist(), strict=True)))
            for index in np.unique(shard[of_split]).tolist():
                if (split, index) not in self._open:
                    path = f"{self._name}-{split}-{index:03d}.gz"
                    self._open[split, index] = ShardWriter(path, text_level(path), self._pool)
                here = np.flatnonzero(of_split & (shard == index)).tolist()
                self._open[split, index].write([examples[i] for i in here])

    def close(self) -> list[Shard]:
        """Close all shards; return them.

        Raises:
          tensorflow.errors.OpError: a shard cannot be written.
        """
        for writer in self._open.values():
            writer.close()
        shards = sorted(self._open.items())
        return [Shard(split, writer.path, writer.count) for (split, _), writer in shards]
