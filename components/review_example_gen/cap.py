"""Find the limits of `data.max_examples` in memory that does not grow with the input.

A first pass over the input writes the places of all reviews to files and counts their buckets, see
`ranks`. One worker gets only the ranks of the bucket in which the limit is.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen import ranks, splits
from components.review_example_gen.chunks import in_chunks
from components.review_example_gen.units import Unit, lines_before
from components.tfrecords import cores
from preprocessing.reading.cut import Piece
from preprocessing.reading.read import read_batches

_HIGH_32_BITS = np.uint64(0xFFFFFFFF << 32)
_PLACES_PER_FILE = 1 << 20


@dataclass(frozen=True)
class Cap:
    """The limits of `max_examples`.

    Attributes:
      last_rank: capped split -> the highest `ranks.rank` of the reviews that are kept.
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
                over[index] = ranks.rank(int(keys[index]), piece.path, position) > last
        return over


class PlacesFile(NamedTuple):
    """A file with an array of `ranks.PLACE`, and (path, number) of the piece of each source."""

    path: str
    pieces: tuple[tuple[str, int], ...]


class RankKeys(beam.DoFn):
    """(Unit, its held-out keys) -> (split, PlacesFile) of its reviews without duplicates.

    Further outputs are `Done.lines`, tagged LINES, and (split, reviews in each bucket), tagged
    COUNTS.
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
            yield beam.pvalue.TaggedOutput(self.COUNTS, (split, ranks.count_buckets(places)))
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
                        yield split, ranks.places_of(routed.keys[chosen], source, positions[chosen])


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
        | "SumCounts" >> beam.CombinePerKey(ranks.sum_counts)
        | "FindEdges"
        >> beam.MapTuple(lambda split, n: (split, ranks.find_edge(n, max_examples[split])))
    )
    ranked = found["files"] | "RankEdges" >> beam.FlatMap(read_ranks, edges, before)
    return beam.pvalue.AsSingleton(
        pipeline
        | "SoleCap" >> beam.Create([None])
        | "FindCap"
        >> beam.Map(
            lambda _, found, edges, before: Cap(ranks.last_kept(found, edges), before),
            beam.pvalue.AsList(ranked),
            edges,
            before,
        )
    )


def write_places(path: str, places: np.ndarray) -> None:
    """Write an array of `ranks.PLACE` to a new file."""
    with FileSystems.create(
        path, "application/octet-stream", CompressionTypes.UNCOMPRESSED
    ) as file:
        file.write(places.tobytes())


def read_ranks(
    element: tuple[str, PlacesFile],
    edges: Mapping[str, ranks.Edge | None],
    before: Mapping[tuple[str, int], int],
) -> Iterator[tuple[str, np.ndarray]]:
    """Read a file of places; yield its split and their `ranks.at_edge`."""
    split, (path, pieces) = element
    edge = edges[split]
    if edge is not None:
        with FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            places = np.frombuffer(file.read(), ranks.PLACE)
        yield split, ranks.at_edge(places, edge, pieces, before)
