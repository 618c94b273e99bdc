"""Give each unit the text keys of eval and test files, so that duplicates are found in other files.

This is a join of the reviews of held-out files with all reviews. Small held-out files are joined by
broadcast: every worker gets all of their keys. Otherwise the keys of all files are joined by a
shuffle, one range of keys after the other, and each unit gets only those that occur in it. This
requires a first pass over all files, but no worker has more than the keys of a range or of a unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np

from components.review_example_gen import splits
from components.review_example_gen.chunks import in_chunks
from components.review_example_gen.units import Source, Unit, in_units
from components.tfrecords import cores
from preprocessing.reading.find import HELD_OUT, SourceFile
from preprocessing.reading.read import read_batches

BROADCAST_BYTES = 4 << 30
"""The largest held-out text that is joined by broadcast. Reviews of 700 bytes have 47 MiB of keys
then, and `JoinHeldOut` has 193 MiB at its peak. Reviews of 100 bytes have 328 MiB and 1.3 GiB,
which fits in the default memory of the workers on Flink."""
_BYTES_PER_RANGE = 512 << 20
"""The text of the keys in a range: 6 MB of keys for reviews of 700 bytes, 43 MB for 100 bytes.
Flink sorts ranges, and by default no element may be larger than its sort buffer."""
_KEYS_AT_ONCE = 1 << 20


class Keys(NamedTuple):
    """Sorted, unique `text_keys` of reviews from the files of `group` in the unit `unit`."""

    unit: int
    group: str
    keys: np.ndarray


def with_held_out(
    pipeline: beam.Pipeline, files: Iterable[SourceFile], sources: list[Source]
) -> tuple[beam.PCollection, Any]:
    """Return the units with their held-out keys.

    Args:
      pipeline: the pipeline.
      files: the input files.
      sources: their pieces.

    Returns:
      A PCollection of (Unit, HeldOut), and a HeldOut or the side input of one. The keys of a unit
      are in one of them, and the other one is empty.
    """
    units = in_units(sources)
    created = pipeline | "Units" >> beam.Create(units, reshuffle=True)
    held_out = [source for source in sources if source.group in HELD_OUT]
    if held_out and held_out_bytes(files, sources) > BROADCAST_BYTES:
        text = sum(source.piece.unpacked for source in sources)
        return _shuffle(created, math.ceil(text / _BYTES_PER_RANGE)), {}
    alone = created | "NoOwnKeys" >> beam.Map(lambda unit: (unit, {}))
    return alone, _broadcast(pipeline, held_out) if held_out else {}


def held_out_bytes(files: Iterable[SourceFile], sources: Iterable[Source]) -> int:
    """Return an upper estimate of the bytes of text in held-out files.

    The text of an archive is not known before it is read. The estimate counts its usual growth
    twice: 6.2 bytes for each byte of a bz2 file, which is more than review text is compressed.
    """
    stored = sum(file.size for file in files if file.group in HELD_OUT)
    text = sum(source.piece.unpacked for source in sources if source.group in HELD_OUT)
    return text + (text - stored)


def _broadcast(pipeline: beam.Pipeline, held_out: list[Source]) -> Any:
    keys = (
        pipeline
        | "HeldOutUnits" >> beam.Create(in_units(held_out), reshuffle=True)
        | "HeldOutKeys" >> beam.ParDo(ReadKeys())
    )
    return beam.pvalue.AsSingleton(
        pipeline
        | "SoleHeldOut" >> beam.Create([None])
        | "JoinHeldOut" >> beam.Map(lambda _, found: join_held_out(found), beam.pvalue.AsList(keys))
    )


def _shuffle(units: beam.PCollection, ranges: int) -> beam.PCollection:
    matches = (
        units
        | "AllKeys" >> beam.ParDo(ReadKeys())
        | "InRanges" >> beam.FlatMap(in_ranges, ranges)
        | "GroupRanges" >> beam.GroupByKey()
        | "JoinRange" >> beam.FlatMapTuple(lambda _, found: join_range(found))
    )
    numbered = units | "UnitNumbers" >> beam.Map(lambda unit: (unit.number, unit))
    return (
        (numbered, matches)
        | "GroupUnits" >> beam.CoGroupByKey()
        | "OwnKeys" >> beam.MapTuple(lambda _, found: (*found[0], splits.held_out_keys(found[1])))
    )


class ReadKeys(beam.DoFn):
    """Unit -> Keys."""

    def process(self, unit: Unit) -> Iterator[Keys]:
        """Read the unit for the keys alone."""
        for group, keys in in_chunks(_keys(unit), _KEYS_AT_ONCE):
            yield Keys(unit.number, group, np.unique(keys))


def _keys(unit: Unit) -> Iterator[tuple[str, np.ndarray]]:
    with ThreadPoolExecutor(cores()) as pool:
        for group, piece in unit.sources:
            for batch in read_batches(piece, pool):
                yield group, splits.text_keys(batch.texts)


def join_held_out(found: Iterable[Keys]) -> splits.HeldOut:
    """Return the keys of held-out files."""
    return splits.held_out_keys((each.group, each.keys) for each in found if each.group in HELD_OUT)


def in_ranges(found: Keys, count: int) -> Iterator[tuple[int, Keys]]:
    """Divide keys; yield the number of a range and its keys, without empty ranges.

    Args:
      found: the keys.
      count: the number of ranges, which have equal parts of all possible keys.
    """
    starts = np.array([(number << 64) // count for number in range(1, count)], np.uint64)
    parts = np.split(found.keys, np.searchsorted(found.keys, starts))
    for number, keys in enumerate(parts):
        if len(keys):
            yield number, found._replace(keys=keys)


def join_range(found: Iterable[Keys]) -> Iterator[tuple[int, tuple[str, np.ndarray]]]:
    """Join the keys of a range; yield the number of a unit, a held-out group, and its keys.

    The keys of a held-out group are those that also occur in the unit's files of a lower group.

    Args:
      found: the keys of all units in this range.
    """
    everything = list(found)
    held_out = join_held_out(everything)
    for unit, group, keys in everything:
        for name in splits.HIGHER_GROUPS[group]:
            if name in held_out:
                common = keys[splits.are_in(keys, held_out[name])]
                if len(common):
                    yield unit, (name, common)
