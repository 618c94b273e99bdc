"""The Beam stages of ReviewExampleGen: read, route and write reviews, and account for each line.

One element is a unit of work: pieces of files that one worker reads, routes, encodes and writes,
all in one stage. No review is ever held in a shuffle, so memory does not grow with the input.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from random import Random
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen import splits
from components.tfrecords import TEXT_LEVEL, ShardWriter, cores
from preprocessing.examples import encode_examples
from preprocessing.progress import Progress
from preprocessing.readers import Batch, Piece, read_batches

DUPLICATE = "duplicate_across_splits"
"""Reason of a review that is readable but also stands in a held-out split."""
LOST_BYTES = "lost_bytes"
"""Counted beside the lines: what damage takes up in compressed files."""

_BYTES_PER_UNIT = 128 << 20
_SOURCES_AT_ONCE = 8
_BYTES_PER_SHARD = 16 << 20


class Source(NamedTuple):
    """A piece of a file, and the group that the file was named in."""

    group: str
    piece: Piece


class Unit(NamedTuple):
    """What one worker does at a time. `number` tells it from the others."""

    number: int
    sources: tuple[Source, ...]

    @property
    def shards(self) -> int:
        """Enough that one can be shuffled in memory, few enough that files stay large."""
        unpacked = sum(source.piece.unpacked for source in self.sources)
        return max(1, round(unpacked / _BYTES_PER_SHARD))


class Done(NamedTuple):
    """What came of a unit.

    `shards` are (split, path) of closed, not yet published files; `rejected` is the path of the
    rejected lines, whose positions count from the beginning of their piece; `lines` tells of each
    piece how many lines it has.
    """

    unit: int
    shards: tuple[tuple[str, str], ...]
    rejected: str | None
    counts: Mapping[str, int]
    lines: tuple[tuple[str, int, int], ...]


class Routed(NamedTuple):
    """A batch, and for each of its reviews the key, the split, and whether a held-out split has
    the same text (the split's name, or an empty one)."""

    batch: Batch
    keys: np.ndarray
    split: np.ndarray
    stands_in: np.ndarray


def in_units(sources: list[Source]) -> list[Unit]:
    """Share the pieces out, so that each unit has some from all over the input.

    The input is divided into strata of one piece a unit. Which unit gets which piece of a stratum,
    and in which order a unit reads, is random with a fixed seed: an input that is sorted, or that
    changes in a rhythm, by label say, is mixed within each file that is written.
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


def _route(
    source: Source, named: frozenset[str], selection: splits.Selection, pool: ThreadPoolExecutor
) -> Iterator[Routed]:
    for batch in read_batches(source.piece, pool):
        keys = splits.text_keys(batch.texts)
        yield Routed(
            batch,
            keys,
            splits.assign_splits(keys, source.group, named),
            selection.stand_elsewhere(keys, source.group),
        )


def _in_turns(
    unit: Unit, named: frozenset[str], selection: splits.Selection, pool: ThreadPoolExecutor
) -> Iterator[tuple[int, Routed]]:
    """The batches of a unit and the place of each one's source, of several sources in turns."""
    waiting = ((place, _route(s, named, selection, pool)) for place, s in enumerate(unit.sources))
    reading = deque(islice(waiting, _SOURCES_AT_ONCE))
    while reading:
        place, batches = reading.popleft()
        routed = next(batches, None)
        if routed is None:
            reading.extend(islice(waiting, 1))
            continue
        reading.append((place, batches))
        yield place, routed


class HeldOutKeys(beam.DoFn):
    """Unit -> (group, uint64 text keys of its reviews)."""

    def process(self, unit: Unit) -> Iterator[tuple[str, np.ndarray]]:
        with ThreadPoolExecutor(cores()) as pool:
            for source in unit.sources:
                routed = _route(source, frozenset(), splits.Selection(), pool)
                yield source.group, splits.joined(item.keys for item in routed)


class RankKeys(beam.DoFn):
    """Unit -> (split, places of the reviews that may be kept in it) and, tagged LINES, what
    `Done.lines` is."""

    LINES = "lines"

    def __init__(self, named: frozenset[str]):
        self._named = named

    def process(self, unit: Unit, held_out: Mapping[str, np.ndarray]) -> Iterator[Any]:
        selection = splits.Selection(held_out)
        with ThreadPoolExecutor(cores()) as pool:
            for source in unit.sources:
                piece, lines = source.piece, 0
                found: dict[str, list[np.ndarray]] = defaultdict(list)
                positions: dict[str, list[np.ndarray]] = defaultdict(list)
                for routed in _route(source, self._named, selection, pool):
                    lines += routed.batch.lines
                    place = np.array(routed.batch.positions, np.int64)
                    for split in splits.SPLITS:
                        chosen = (routed.split == split) & (routed.stands_in == "")
                        found[split].append(routed.keys[chosen])
                        positions[split].append(place[chosen])
                for split in splits.SPLITS:
                    keys = splits.joined(found[split])
                    where = splits.joined(positions[split], np.int64)
                    yield split, splits.Places(piece.path, piece.number, keys, where)
                yield beam.pvalue.TaggedOutput(self.LINES, (piece.path, piece.number, lines))


class ReadUnit(beam.DoFn):
    """Unit -> Done."""

    def __init__(self, named: frozenset[str], scratch: str):
        self._named = named
        self._scratch = scratch

    def process(
        self, unit: Unit, held_out: Mapping[str, np.ndarray], cap: splits.Cap
    ) -> Iterator[Done]:
        # A bundle that Beam tries again leaves only files behind that nobody is told of.
        name = FileSystems.join(self._scratch, f"{unit.number:05d}-{uuid.uuid4().hex}")
        selection = splits.Selection(held_out)
        counts: Counter[str] = Counter()
        lines = [0] * len(unit.sources)
        rejected = _Rejected(f"{name}.jsonl")
        with ThreadPoolExecutor(cores()) as pool:
            writers = _Writers(name, unit.shards, pool)
            with Progress("reviews", str(unit.number)) as progress:
                for place, routed in _in_turns(unit, self._named, selection, pool):
                    piece = unit.sources[place].piece
                    rejected.add(piece, routed)
                    kept = routed.stands_in == ""
                    _count(counts, routed)
                    over = cap.is_over(routed.split, routed.keys, routed.batch.positions, piece)
                    counts["over_max_examples"] += int(np.count_nonzero(kept & over))
                    writers.write(routed, kept & ~over, counts)
                    lines[place] += routed.batch.lines
                    progress.advance(routed.batch.lines)
            shards = writers.close()
        by_piece = tuple(
            (source.piece.path, source.piece.number, count)
            for source, count in zip(unit.sources, lines, strict=True)
        )
        yield Done(unit.number, shards, rejected.close(), dict(+counts), by_piece)


class _Writers:
    """The open shards of a unit: a review's shard is decided by its text."""

    def __init__(self, name: str, shards: int, pool: ThreadPoolExecutor):
        self._name, self._shards, self._pool = name, shards, pool
        self._open: dict[tuple[str, int], ShardWriter] = {}

    def write(self, routed: Routed, chosen: np.ndarray, counts: Counter[str]) -> None:
        batch = routed.batch
        examples = encode_examples(batch.labels, batch.texts, batch.titles, batch.bodies)
        shard = (routed.keys >> np.uint64(8)) % np.uint64(self._shards)
        for split in splits.SPLITS:
            of_split = chosen & (routed.split == split)
            number = int(np.count_nonzero(of_split))
            if not number:
                continue
            counts[f"examples/{split}"] += number
            for index in range(self._shards):
                here = np.flatnonzero(of_split & (shard == index))
                if len(here):
                    self._writer(split, index).write([examples[i] for i in here.tolist()])

    def close(self) -> tuple[tuple[str, str], ...]:
        for writer in self._open.values():
            writer.close()
        return tuple((split, writer.path) for (split, _), writer in sorted(self._open.items()))

    def _writer(self, split: str, index: int) -> ShardWriter:
        if (split, index) not in self._open:
            path = f"{self._name}-{split}-{index:03d}.gz"
            self._open[split, index] = ShardWriter(path, TEXT_LEVEL, self._pool)
        return self._open[split, index]


class _Rejected:
    """The rejected lines of a unit, in a file of its own if there are any."""

    def __init__(self, path: str):
        self._path = path
        self._file: Any = None

    def add(self, piece: Piece, routed: Routed) -> None:
        batch = routed.batch
        found = [(item.position, item.reason, item.detail) for item in batch.rejected]
        for index in np.flatnonzero(routed.stands_in != "").tolist():
            detail = f"the same text is in the {routed.stands_in[index]} files"
            found.append((batch.positions[index], DUPLICATE, detail))
        if not found:
            return
        if self._file is None:
            self._file = FileSystems.create(self._path, "application/json")
        for position, reason, detail in sorted(found):
            line = json.dumps([piece.path, piece.number, position, reason, detail])
            self._file.write(line.encode() + b"\n")

    def close(self) -> str | None:
        if self._file is None:
            return None
        self._file.close()
        return self._path


def _count(counts: Counter[str], routed: Routed) -> None:
    batch = routed.batch
    counts["neutral"] += batch.neutrals
    counts[LOST_BYTES] += batch.lost
    counts[f"rejected/{DUPLICATE}"] += int(np.count_nonzero(routed.stands_in != ""))
    for item in batch.rejected:
        counts[f"rejected/{item.reason}"] += 1
