"""Beam's function of ReviewExampleGen: read the lines of a unit, and write each one.

A line becomes an Example of its split, is counted as neutral or as over a limit, or is written
with the reason why it is not used.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen.splits import (
    SPLITS,
    AssignedBatch,
    HeldOut,
    Limits,
    assign_batch,
    is_over,
)
from components.review_example_gen.units import Unit, read_in_turns
from core.machine import cores
from core.progress import Progress
from examples.writer import TEXT_LEVEL, ShardWriter
from preprocessing.fast.encode import encode_examples
from preprocessing.reading.pieces import Piece

DUPLICATE = "duplicate_across_splits"
"""The reason of a readable review whose text is also in the files of a held-out split."""
LOST_BYTES = "lost_bytes"
"""The count of the bytes that cannot be read, see `Batch.lost`, beside the counts of lines."""


class UnitResult(NamedTuple):
    unit: int
    shards: tuple[tuple[str, str, int], ...]
    """(split, path, number of Examples) of the closed, not yet published files."""
    rejected: str
    """Path of the rejected lines, whose positions count from the beginning of their piece."""
    counts: Mapping[str, Mapping[str, int]]
    """Path of a file -> `neutral`, `over_max_examples`, `lost_bytes`, `rejected/REASON` and
    `examples/SPLIT` -> their number."""
    lines: tuple[tuple[str, int, int], ...]
    """(path of a file, number of a piece, lines in it)."""


def read_unit(
    unit: Unit, held_out: HeldOut, limits: Limits, named: frozenset[str], scratch: str
) -> Iterator[UnitResult]:
    """Read every line of a unit, assign its split, encode it and write it to the folder `scratch`.

    `named` are the groups that have files of their own.
    """
    # Beam may retry a bundle: the files of the first attempt are then never published.
    name = FileSystems.join(scratch, f"{unit.number:05d}-{uuid.uuid4().hex}")
    lines: Counter[tuple[str, int]] = Counter()
    with (
        ThreadPoolExecutor(cores()) as pool,
        Progress("reviews", str(unit.number)) as progress,
        FileSystems.create(f"{name}.jsonl") as rejected,
    ):
        output = UnitOutput(name, unit.shards, rejected, pool)
        for group, piece, batch in read_in_turns(unit, pool):
            assigned = assign_batch(batch, group, named, held_out)
            output.add(piece, assigned, is_over(assigned, limits))
            lines[piece.path, piece.number] += batch.lines
            progress.advance(batch.lines)
        shards = output.close()
    counts = {path: dict(+of_file) for path, of_file in output.counts.items()}
    by_piece = tuple((path, number, count) for (path, number), count in lines.items())
    yield UnitResult(unit.number, shards, f"{name}.jsonl", counts, by_piece)


class UnitOutput:
    """The open files of a unit, and `counts`, see `UnitResult`."""

    def __init__(self, name: str, shards: int, rejected: Any, pool: ThreadPoolExecutor):
        """`name` is the beginning of the path of each of the `shards` of a split."""
        self._name, self._shards, self._rejected, self._pool = name, shards, rejected, pool
        self._open: dict[tuple[str, int], ShardWriter] = {}
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, piece: Piece, assigned: AssignedBatch, over: np.ndarray) -> None:
        """Write a batch and count its lines; the mask `over` is true for reviews over a limit."""
        batch, counts = assigned.batch, self.counts[piece.path]
        unique = assigned.duplicate_in == ""
        counts["neutral"] += len(batch.neutrals)
        counts[LOST_BYTES] += batch.lost
        counts["over_max_examples"] += int(np.count_nonzero(unique & over))
        found = [(item.position, item.reason, item.detail) for item in batch.rejected]
        for index in np.flatnonzero(~unique).tolist():
            detail = f"the same text is in the {assigned.duplicate_in[index]} files"
            found.append((batch.positions[index], DUPLICATE, detail))
        for position, reason, detail in sorted(found):
            counts[f"rejected/{reason}"] += 1
            line = json.dumps([piece.path, piece.number, position, reason, detail])
            self._rejected.write(line.encode() + b"\n")
        self._write_examples(assigned, unique & ~over, counts)

    def _write_examples(
        self, assigned: AssignedBatch, chosen: np.ndarray, counts: Counter[str]
    ) -> None:
        examples = encode_examples(assigned.batch.columns)
        # The text of a review decides its shard.
        shard = (assigned.keys >> np.uint64(8)) % np.uint64(self._shards)
        for split in SPLITS:
            of_split = chosen & (assigned.split == split)
            counts[f"examples/{split}"] += int(np.count_nonzero(of_split))
            for index in np.unique(shard[of_split]).tolist():
                if (split, index) not in self._open:
                    path = f"{self._name}-{split}-{index:03d}.gz"
                    self._open[split, index] = ShardWriter(path, TEXT_LEVEL, self._pool)
                here = np.flatnonzero(of_split & (shard == index)).tolist()
                self._open[split, index].write([examples[i] for i in here])

    def close(self) -> tuple[tuple[str, str, int], ...]:
        """Close all shards; return split, path and number of Examples of each."""
        for writer in self._open.values():
            writer.close()
        shards = sorted(self._open.items())
        return tuple((split, writer.path, writer.count) for (split, _), writer in shards)
