"""The Beam stage of ReviewExampleGen that writes the Examples.

One element is a unit of work: pieces of files that one worker reads, routes, encodes and writes in
one stage. No review passes through a shuffle, so memory does not grow with the input.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen import splits
from components.review_example_gen.account import Account
from components.review_example_gen.example_limit import Limits, is_over
from components.review_example_gen.shards import Shards
from components.review_example_gen.units import Unit
from components.tfrecords import cores
from core.progress import Progress
from preprocessing.reading.batch import Batch
from preprocessing.reading.read import read_batches

_SOURCES_AT_ONCE = 8


class Done(NamedTuple):
    """The result of a unit.

    Attributes:
      unit: its number.
      shards: (split, path) of the closed, not yet published files.
      rejected: path of the rejected lines, whose positions count from the beginning of their piece.
      counts: path of a file -> the counts of `Account.add`, `examples/SPLIT`, `over_max_examples`.
      lines: (path of a file, number of a piece, lines in it).
    """

    unit: int
    shards: tuple[tuple[str, str], ...]
    rejected: str | None
    counts: Mapping[str, Mapping[str, int]]
    lines: tuple[tuple[str, int, int], ...]


class ReadUnit(beam.DoFn):
    """Unit -> Done."""

    def __init__(self, named: frozenset[str], scratch: str):
        """Construct the function.

        Args:
          named: the groups that have files of their own.
          scratch: the folder that is written to.
        """
        self._named = named
        self._scratch = scratch

    def process(self, unit: Unit, held_out: splits.HeldOut, limits: Limits) -> Iterator[Done]:
        """Read every line of the unit, assign its split, encode it and write it.

        Args:
          unit: the pieces.
          held_out: the keys of the held-out files.
          limits: the limits of `max_examples`.
        """
        # Beam may retry a bundle: the files of the first attempt are then never published.
        name = FileSystems.join(self._scratch, f"{unit.number:05d}-{uuid.uuid4().hex}")
        lines = [0] * len(unit.sources)
        account = Account(f"{name}.jsonl")
        with (
            ThreadPoolExecutor(cores()) as pool,
            Progress("reviews", str(unit.number)) as progress,
        ):
            shards = Shards(name, unit.shards, pool)
            for place, batch in _read_in_turns(unit, pool):
                group, piece = unit.sources[place]
                routed = splits.route(batch, group, self._named, held_out)
                counts = account.add(piece, routed)
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
        yield Done(unit.number, written, account.close(), account.by_file(), by_piece)


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
