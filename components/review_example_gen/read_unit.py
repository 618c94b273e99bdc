"""The Beam stage of ReviewExampleGen that reads a unit and writes its Examples.

One element is a unit of work: pieces of files that one worker reads, routes, encodes and writes in
one stage. No review passes through a shuffle, so memory does not grow with the input. Every line
that does not become an Example is counted, and written with its reason if it is unusable.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen import splits
from components.review_example_gen.example_limit import Limits, is_over
from components.review_example_gen.units import Unit
from components.tfrecords import TEXT_LEVEL, ShardWriter, cores
from core.progress import Progress
from preprocessing import features
from preprocessing.fast.encode import encode_examples
from preprocessing.reading.pieces import Piece
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import Batch

DUPLICATE = "duplicate_across_splits"
"""The reason of a readable review whose text is also in the files of a held-out split."""
LOST_BYTES = "lost_bytes"
"""The count of damaged bytes of compressed files, beside the counts of lines."""
_SOURCES_AT_ONCE = 8


class UnitResult(NamedTuple):
    """The result of a unit.

    Attributes:
      unit: its number.
      shards: (split, path) of the closed, not yet published files.
      rejected: path of the rejected lines, whose positions count from the beginning of their piece.
      counts: path of a file -> the counts of `LineCounts.add`, `examples/SPLIT` and
        `over_max_examples`.
      lines: (path of a file, number of a piece, lines in it).
    """

    unit: int
    shards: tuple[tuple[str, str], ...]
    rejected: str | None
    counts: Mapping[str, Mapping[str, int]]
    lines: tuple[tuple[str, int, int], ...]


class ReadUnit(beam.DoFn):
    """Unit -> UnitResult."""

    def __init__(self, named: frozenset[str], scratch: str):
        """Construct the function.

        Args:
          named: the groups that have files of their own.
          scratch: the folder that is written to.
        """
        self._named = named
        self._scratch = scratch

    def process(self, unit: Unit, held_out: splits.HeldOut, limits: Limits) -> Iterator[UnitResult]:
        """Read every line of the unit, assign its split, encode it and write it.

        Args:
          unit: the pieces.
          held_out: the keys of the held-out files.
          limits: the limits of `max_examples`.
        """
        # Beam may retry a bundle: the files of the first attempt are then never published.
        name = FileSystems.join(self._scratch, f"{unit.number:05d}-{uuid.uuid4().hex}")
        lines = [0] * len(unit.sources)
        line_counts = LineCounts(f"{name}.jsonl")
        with (
            ThreadPoolExecutor(cores()) as pool,
            Progress("reviews", str(unit.number)) as progress,
        ):
            shards = Shards(name, unit.shards, pool)
            for place, batch in _read_in_turns(unit, pool):
                group, piece = unit.sources[place]
                routed = splits.route(batch, group, self._named, held_out)
                counts = line_counts.add(piece, routed)
                kept = routed.duplicate_in == ""
                over = is_over(routed.split, routed.keys, limits)
                counts["over_max_examples"] += int(np.count_nonzero(kept & over))
                shards.write(routed, kept & ~over, counts)
                lines[place] += batch.lines
                progress.advance(batch.lines)
            written = shards.close()
        by_piece = tuple(
            (source.piece.path, source.piece.number, count)
            for source, count in zip(unit.sources, lines, strict=True)
        )
        yield UnitResult(unit.number, written, line_counts.close(), line_counts.by_file(), by_piece)


def _read_in_turns(unit: Unit, pool: ThreadPoolExecutor) -> Iterator[tuple[int, Batch]]:
    """Yield (index of the source, batch) for all batches of a unit, several sources in turns."""
    waiting = ((place, read_batches(s.piece, pool)) for place, s in enumerate(unit.sources))
    reading = deque(islice(waiting, _SOURCES_AT_ONCE))
    while reading:
        place, batches = reading.popleft()
        batch = next(batches, None)
        if batch is None:
            reading.extend(islice(waiting, 1))
            continue
        reading.append((place, batches))
        yield place, batch


class LineCounts:
    """The counts of a unit for each input file, and the file of its rejected lines."""

    def __init__(self, path: str):
        """Open no file yet.

        Args:
          path: the file of the rejected lines. Without a rejected line it is not created.
        """
        self._by_file: dict[str, Counter[str]] = {}
        self._path = path
        self._file: Any = None

    def add(self, piece: Piece, routed: splits.Routed) -> Counter[str]:
        """Count a batch and write its rejected lines, with their positions in the piece.

        Returns:
          The counts of the piece's file: `neutral`, `lost_bytes` and `rejected/REASON`. The caller
          adds further counts to them.
        """
        batch = routed.batch
        counts = self._by_file.setdefault(piece.path, Counter())
        counts["neutral"] += batch.neutrals
        counts[LOST_BYTES] += batch.lost
        found = [(item.position, item.reason, item.detail) for item in batch.rejected]
        for index in np.flatnonzero(routed.duplicate_in != "").tolist():
            detail = f"the same text is in the {routed.duplicate_in[index]} files"
            found.append((batch.positions[index], DUPLICATE, detail))
        if not found:
            return counts
        if self._file is None:
            self._file = FileSystems.create(self._path, "application/json")
        for position, reason, detail in sorted(found):
            counts[f"rejected/{reason}"] += 1
            line = json.dumps([piece.path, piece.number, position, reason, detail])
            self._file.write(line.encode() + b"\n")
        return counts

    def by_file(self) -> dict[str, dict[str, int]]:
        """Return path -> name -> count, without zeros."""
        return {path: dict(+counts) for path, counts in self._by_file.items()}

    def close(self) -> str | None:
        """Close the file; return its path, or None if no line was rejected."""
        if self._file is None:
            return None
        self._file.close()
        return self._path


class Shards:
    """The open shards of a unit. The text of a review decides its shard."""

    def __init__(self, name: str, count: int, pool: ThreadPoolExecutor):
        """Open no file yet.

        Args:
          name: the beginning of every shard's path.
          count: shards of each split.
          pool: the threads that compress.
        """
        self._name, self._count, self._pool = name, count, pool
        self._open: dict[tuple[str, int], ShardWriter] = {}

    def write(self, routed: splits.Routed, chosen: np.ndarray, counts: Counter[str]) -> None:
        """Write the reviews of a batch for which the mask `chosen` is true, and count them."""
        batch = routed.batch
        examples = encode_examples(
            {features.TEXT: batch.texts, features.LABEL: batch.labels, **batch.further}
        )
        shard = (routed.keys >> np.uint64(8)) % np.uint64(self._count)
        for split in splits.SPLITS:
            of_split = chosen & (routed.split == split)
            number = int(np.count_nonzero(of_split))
            if not number:
                continue
            counts[f"examples/{split}"] += number
            for index in range(self._count):
                here = np.flatnonzero(of_split & (shard == index))
                if not len(here):
                    continue
                if (split, index) not in self._open:
                    path = f"{self._name}-{split}-{index:03d}.gz"
                    self._open[split, index] = ShardWriter(path, TEXT_LEVEL, self._pool)
                self._open[split, index].write([examples[i] for i in here.tolist()])

    def close(self) -> tuple[tuple[str, str], ...]:
        """Close all shards; return split and path of each."""
        for writer in self._open.values():
            writer.close()
        return tuple((split, writer.path) for (split, _), writer in sorted(self._open.items()))
