"""The limits of `data.max_examples`, found by a histogram of the text keys of all reviews.

A first pass over the input counts the reviews of each split in 65,536 ranges of keys. Of these, the
lowest ranges are kept that together have at most `max_examples` reviews. A range is kept or left
out as a whole, with all copies of a text. Of N different reviews the split has up to about
N / 65,536 fewer than `max_examples`, and more are missing if the next range has a text with many
copies. In return a limit is one number, each review is compared with it alone, and neither the
order of the files nor the number of workers matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apache_beam as beam
import numpy as np

from components.review_example_gen import splits
from components.review_example_gen.units import Unit
from components.tfrecords import cores
from preprocessing.reading.read import read_batches

_BITS = 16

Limits = Mapping[str, int]
"""Limited split -> the number of ranges that are kept."""


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

    Args:
      units: a PCollection of Unit.
      held_out: see `held_out.find_held_out`.
      named: the groups that have files of their own.
      max_examples: split -> the largest number of its reviews.
    """
    if not max_examples:
        return {}
    return beam.pvalue.AsDict(
        units
        | "CountRanges" >> beam.FlatMap(_count_unit, held_out, named, frozenset(max_examples))
        | "SumRanges" >> beam.CombinePerKey(_sum)
        | "FindLimits"
        >> beam.MapTuple(lambda split, n: (split, find_limit(n, max_examples[split])))
    )


def _count_unit(
    unit: Unit, held_out: splits.HeldOut, named: frozenset[str], limited: frozenset[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each limited split, and the number of its reviews of the unit in each range."""
    counts = {split: count_ranges(splits.text_keys([])) for split in limited}
    with ThreadPoolExecutor(cores()) as pool:
        for group, piece in unit.sources:
            for batch in read_batches(piece, pool):
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


def _sum(counts: Iterable[np.ndarray]) -> np.ndarray:
    return sum(counts, count_ranges(splits.text_keys([])))


def _ranges(keys: np.ndarray) -> np.ndarray:
    return (keys >> np.uint64(64 - _BITS)).astype(np.int64)
