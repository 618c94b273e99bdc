"""Select the reviews that `data.max_examples` keeps, in memory that does not grow with the input.

The rank of a review orders the reviews of a split. A first pass over the input writes the places of
all reviews to files, and counts them by the first bits of their ranks. The counts show the bucket
of the last review that is kept, so only the places in this bucket are ranked.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen import splits
from components.review_example_gen.chunks import in_chunks
from components.review_example_gen.units import Unit, lines_before
from components.tfrecords import cores
from preprocessing.reading.cut import Piece
from preprocessing.reading.read import read_batches

PLACE = np.dtype([("high", "<u4"), ("source", "<u4"), ("position", "<i8")])
"""A review: the upper 32 bits of its text key, the index of its source in the unit, and its
position in the piece."""

_LOW_32_BITS = 0xFFFFFFFF
_HIGH_32_BITS = np.uint64(0xFFFFFFFF << 32)
_BUCKETS = 1 << 12
"""Counts of 32 kB for each file of places; a bucket of 1 billion reviews has 4 MB of places."""
_BITS_IN_BUCKET = np.uint32(20)
_PLACES_PER_FILE = 1 << 20


def rank_key(key: int, file_name: str, position: int) -> int:
    """Return the sort key of a review for `max_examples`.

    The key orders reviews by their texts, so that a sample does not depend on the division of the
    files into pieces. It orders equal texts by their places, so that a sample can contain some of
    them and has an exact size.
    """
    place = hashlib.blake2b(f"{file_name}\n{position}".encode(), digest_size=4).digest()
    return (key & ~_LOW_32_BITS) | int.from_bytes(place, "little")


@dataclass(frozen=True)
class Cap:
    """The limits of `max_examples`.

    Attributes:
      last_rank: capped split -> the highest `rank_key` of the reviews that are kept.
      before: (path, number) of a piece of a file -> the number of lines before the piece.
    """

    last_rank: Mapping[str, int] = field(default_factory=dict)
    before: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def is_over(
        self, split: np.ndarray, keys: np.ndarray, positions: Sequence[int], piece: Piece
    ) -> np.ndarray:
        """Return for each review whether it is over the limit of its split."""
        over = np.zeros(len(keys), bool)
        for name, last in self.last_rank.items():
            here = split == name
            high = keys & _HIGH_32_BITS
            limit = np.uint64(last) & _HIGH_32_BITS
            over |= here & (high > limit)
            # The place matters only for texts with the same upper bits.
            for index in np.flatnonzero(here & (high == limit)).tolist():
                position = self.before[piece.path, piece.number] + positions[index]
                over[index] = _rank(piece.path, int(keys[index]), position) > last
        return over


class Edge(NamedTuple):
    """The bucket with the last review of a split that is kept, and how many of it are kept."""

    bucket: int
    kept: int


class PlacesFile(NamedTuple):
    """A file with an array of PLACE, and (path, number) of the piece of each source."""

    path: str
    pieces: tuple[tuple[str, int], ...]


class RankKeys(beam.DoFn):
    """(Unit, its held-out keys) -> (split, PlacesFile) of its reviews without duplicates.

    Further outputs are `Done.lines`, tagged LINES, and (split, `count_buckets`), tagged COUNTS.
    """

    LINES, COUNTS = "lines", "counts"

    def __init__(self, named: frozenset[str], capped: frozenset[str], scratch: str):
        """Construct the function.

        Args:
          named: the groups that have files of their own.
          capped: the splits that have a limit.
          scratch: the folder that is written to.
        """
        self._named, self._capped, self._scratch = named, capped, scratch

    def process(
        self, element: tuple[Unit, splits.HeldOut], everywhere: splits.HeldOut
    ) -> Iterator[Any]:
        """Read the unit for the keys and positions alone; see `ReadUnit.process`."""
        unit, own = element
        pieces = tuple((source.piece.path, source.piece.number) for source in unit.sources)
        lines = [0] * len(pieces)
        found = self._places(unit, {**everywhere, **own}, lines)
        for split, places in in_chunks(found, _PLACES_PER_FILE):
            path = FileSystems.join(self._scratch, f"{uuid.uuid4().hex}.places")
            write_places(path, places)
            yield split, PlacesFile(path, pieces)
            yield beam.pvalue.TaggedOutput(self.COUNTS, (split, count_buckets(places)))
        for piece, count in zip(pieces, lines, strict=True):
            yield beam.pvalue.TaggedOutput(self.LINES, (*piece, count))

    def _places(
        self, unit: Unit, held_out: splits.HeldOut, lines: list[int]
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yield a split and some of its places; add the lines of each source to `lines`."""
        with ThreadPoolExecutor(cores()) as pool:
            for source, (group, piece) in enumerate(unit.sources):
                for batch in read_batches(piece, pool):
                    routed = splits.route(batch, group, self._named, held_out)
                    lines[source] += batch.lines
                    positions = np.array(batch.positions, np.int64)
                    for split in self._capped:
                        chosen = (routed.split == split) & (routed.duplicate_in == "")
                        yield split, places_of(routed.keys[chosen], source, positions[chosen])


def find_cap(
    pipeline: beam.Pipeline,
    units: beam.PCollection,
    everywhere: Any,
    named: frozenset[str],
    max_examples: Mapping[str, int],
    scratch: str,
) -> Any:
    """Return a `Cap`, or the side input of one; without `max_examples` no file is read.

    Args:
      units, everywhere: see `held_out.with_held_out`.
      named: the groups that have files of their own.
      max_examples: split -> the largest number of its reviews.
      scratch: the folder that is written to.
    """
    if not max_examples:
        return Cap()
    rank_keys = RankKeys(named, frozenset(max_examples), scratch)
    found = units | "RankKeys" >> beam.ParDo(rank_keys, everywhere).with_outputs(
        RankKeys.LINES, RankKeys.COUNTS, main="files"
    )
    before = beam.pvalue.AsSingleton(
        pipeline
        | "SoleBefore" >> beam.Create([None])
        | "LinesBefore"
        >> beam.Map(lambda _, lines: lines_before(lines), beam.pvalue.AsList(found[RankKeys.LINES]))
    )
    edges = beam.pvalue.AsDict(
        found[RankKeys.COUNTS]
        | "SumCounts" >> beam.CombinePerKey(sum_counts)
        | "FindEdges" >> beam.MapTuple(lambda split, n: (split, find_edge(n, max_examples[split])))
    )
    ranks = found["files"] | "RankEdges" >> beam.FlatMap(read_ranks, edges, before)
    return beam.pvalue.AsSingleton(
        pipeline
        | "SoleCap" >> beam.Create([None])
        | "FindCap"
        >> beam.Map(
            lambda _, ranks, edges, before: Cap(last_ranks(ranks, edges), before),
            beam.pvalue.AsList(ranks),
            edges,
            before,
        )
    )


def places_of(keys: np.ndarray, source: int, positions: np.ndarray) -> np.ndarray:
    """Return an array of PLACE for reviews of one source."""
    places = np.empty(len(keys), PLACE)
    places["high"] = keys >> np.uint64(32)
    places["source"] = source
    places["position"] = positions
    return places


def write_places(path: str, places: np.ndarray) -> None:
    """Write an array of PLACE to a new file."""
    with FileSystems.create(
        path, "application/octet-stream", CompressionTypes.UNCOMPRESSED
    ) as file:
        file.write(places.tobytes())


def count_buckets(places: np.ndarray) -> np.ndarray:
    """Return the number of reviews in each bucket, int64 of shape [_BUCKETS]."""
    return np.bincount(_buckets(places), minlength=_BUCKETS)


def sum_counts(counts: Iterable[np.ndarray]) -> np.ndarray:
    """Return the sum of any number of `count_buckets`."""
    total = np.zeros(_BUCKETS, np.int64)
    for each in counts:
        total += each
    return total


def find_edge(counts: np.ndarray, limit: int) -> Edge | None:
    """Return the edge of a split with these counts in its buckets; None if all reviews are kept."""
    up_to = np.cumsum(counts)
    if up_to[-1] <= limit:
        return None
    bucket = int(np.searchsorted(up_to, limit))
    return Edge(bucket, limit - int(up_to[bucket] - counts[bucket]))


def read_ranks(
    element: tuple[str, PlacesFile],
    edges: Mapping[str, Edge | None],
    before: Mapping[tuple[str, int], int],
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a split and the `ranks_at_edge` of a file of its places."""
    split, (path, pieces) = element
    edge = edges[split]
    if edge is not None:
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            places = np.frombuffer(file.read(), PLACE)
        yield split, ranks_at_edge(places, edge, pieces, before)


def ranks_at_edge(
    places: np.ndarray,
    edge: Edge,
    pieces: Sequence[tuple[str, int]],
    before: Mapping[tuple[str, int], int],
) -> np.ndarray:
    """Return the `rank_key` of each review in the bucket of the edge, uint64.

    Args:
      places: an array of PLACE.
      edge: the edge of their split.
      pieces: (path, number) of the piece of each source.
      before: see `Cap`.
    """
    here = places[_buckets(places) == edge.bucket]
    ranks = [
        _rank(pieces[source][0], high << 32, before[pieces[source]] + position)
        for high, source, position in here.tolist()
    ]
    return np.array(ranks, np.uint64)


def last_ranks(
    ranks: Iterable[tuple[str, np.ndarray]], edges: Mapping[str, Edge | None]
) -> dict[str, int]:
    """Return `Cap.last_rank`.

    Args:
      ranks: a split, and the `ranks_at_edge` of some of its reviews.
      edges: capped split -> its edge.
    """
    found = list(ranks)
    last = {}
    for split, edge in edges.items():
        if edge is not None:
            at_edge = np.concatenate([some for name, some in found if name == split])
            last[split] = int(np.partition(at_edge, edge.kept - 1)[edge.kept - 1])
    return last


def _buckets(places: np.ndarray) -> np.ndarray:
    return places["high"] >> _BITS_IN_BUCKET


def _rank(path: str, key: int, position: int) -> int:
    return rank_key(key, os.path.basename(path), position)
