"""What each worker gets before it writes a review: keys of held-out reviews, and limits.

The text keys of eval and test files, by which duplicates in other files are found, are joined by
broadcast: every worker gets all of them, see docs/explanation/scale.md.

The limits of `data.max_examples` follow from a histogram: a first pass over the input counts the
reviews of each split in 65,536 ranges of text keys. Of these, the lowest ranges are kept that
together have at most `max_examples` reviews. A range is kept or left out as a whole, so of N
different reviews the split has up to about N / 65,536 fewer. In return a limit is one number, and
neither the order of the files nor the number of workers matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apache_beam as beam
import numpy as np

from components.review_example_gen import splits
from components.review_example_gen.units import Source, Unit, in_units, read_in_turns
from components.tfrecords import cores
from preprocessing.reading.files import HELD_OUT

_KEYS_AT_ONCE = 1 << 20
"""Keys of an element: by default, no element may be larger than the sort buffer of Flink."""

_BITS = 16

Limits = Mapping[str, int]
"""Limited split -> the number of ranges that are kept."""


def find_held_out(pipeline: beam.Pipeline, sources: list[Source]) -> Any:
    """Return a `splits.HeldOut`, or the side input of one; without held-out files none is read."""
    held_out = [source for source in sources if source.group in HELD_OUT]
    if not held_out:
        return {}
    keys = (
        pipeline
        | "HeldOutUnits" >> beam.Create(in_units(held_out), reshuffle=True)
        | "HeldOutKeys" >> beam.FlatMap(_read_keys)
    )
    return beam.pvalue.AsSingleton(
        pipeline
        | "SoleHeldOut" >> beam.Create([None])
        | "JoinHeldOut"
        >> beam.Map(lambda _, found: splits.held_out_keys(found), beam.pvalue.AsList(keys))
    )


def _read_keys(unit: Unit) -> Iterator[tuple[str, np.ndarray]]:
    """Yield groups, and the `text_keys` of some of their reviews in the unit."""
    with ThreadPoolExecutor(cores()) as pool:
        found = splits.held_out_keys(
            (group, splits.text_keys(batch.texts)) for group, _, batch in read_in_turns(unit, pool)
        )
    for group, keys in found.items():
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            yield group, keys[start : start + _KEYS_AT_ONCE]


def is_over(split: np.ndarray, keys: np.ndarray, limits: Limits) -> np.ndarray:
    """Return for each review whether it is over the limit of its split."""
    over = np.zeros(len(keys), bool)
    for name, kept in limits.items():
        over |= (split == name) & (_ranges(keys) >= kept)
    return over


def find_limits(
    units: beam.PCollection,
    held_out: Any,
    named: frozenset[str],
    max_examples: Mapping[str, int],
) -> Any:
    """Return `Limits`, or the side input of them; without `max_examples` no file is read.

    `units` is a PCollection of Unit, `named` the groups that have files of their own, and
    `max_examples` split -> the largest number of its reviews.
    """
    if not max_examples:
        return {}
    return beam.pvalue.AsDict(
        units
        | "CountRanges" >> beam.FlatMap(_count_unit, held_out, named, frozenset(max_examples))
        | "SumRanges" >> beam.CombinePerKey(lambda counts: np.sum(list(counts), axis=0))
        | "FindLimits"
        >> beam.MapTuple(lambda split, n: (split, find_limit(n, max_examples[split])))
    )


def _count_unit(
    unit: Unit, held_out: splits.HeldOut, named: frozenset[str], limited: frozenset[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each limited split, and the number of its reviews of the unit in each range."""
    counts = {split: np.zeros(1 << _BITS, np.int64) for split in limited}
    with ThreadPoolExecutor(cores()) as pool:
        for group, _, batch in read_in_turns(unit, pool):
            assigned = splits.assign_batch(batch, group, named, held_out)
            for split, total in counts.items():
                chosen = (assigned.split == split) & (assigned.duplicate_in == "")
                total += count_ranges(assigned.keys[chosen])
    yield from counts.items()


def count_ranges(keys: np.ndarray) -> np.ndarray:
    """Return the number of keys in each range."""
    return np.bincount(_ranges(keys), minlength=1 << _BITS)


def find_limit(counts: np.ndarray, max_examples: int) -> int:
    """Return how many of the ranges, the lowest first, have at most `max_examples` reviews."""
    return int(np.searchsorted(np.cumsum(counts), max_examples, side="right"))


def _ranges(keys: np.ndarray) -> np.ndarray:
    return (keys >> np.uint64(64 - _BITS)).astype(np.int64)
