"""The splits: the assignment of reviews, duplicates across splits, and limits of the sizes.

The split depends on a hash of the text and not on the position. Therefore the same input results in
the same splits with every Beam runner and number of workers, and a duplicate text is never in two
splits.

The text keys of the eval and test files are broadcast: every worker gets all of them, to find
duplicates in other files. See docs/explanation/scale.md.

The limits of `data.max_examples` follow from a histogram. A first pass over the input counts the
reviews of each split in 65,536 ranges of text keys. A split keeps the lowest ranges, as many as
have at most `max_examples` reviews in total. A range is kept or left out as a whole. Therefore a
split of N different reviews has up to about N / 65,536 fewer reviews than `max_examples`. In
return, a limit is one number, and it depends neither on the order of the files nor on the number of
workers.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from components.line_counts import DUPLICATE, SPLITS, LineCounts
from components.review_example_gen.units import Source, Unit, in_units, read_in_turns
from core.machine import cores
from examples.split_fractions import SplitFractions, parts_of_keys
from preprocessing.reading.files import HELD_OUT
from preprocessing.reading.records import Batch

if TYPE_CHECKING:
    import apache_beam as beam

HeldOut = Mapping[str, np.ndarray]
"""Held-out group with files -> the sorted, unique `text_keys` of their reviews, uint64 [keys]."""
Limits = Mapping[str, int]
"""Split with a limit -> the number of the lowest ranges of text keys that it keeps."""

_RANGE_BITS = 16
_KEYS_AT_ONCE = 1 << 20
"""Number of keys in an element. By default, an element must fit into the sort buffer of Flink."""


class Splitting(NamedTuple):
    """How the splits are made of the files."""

    named: frozenset[str]
    """The splits that have files of their own."""
    fractions: SplitFractions = SplitFractions()
    """The sizes of the splits that have none."""


def named_splits(sources: Iterable[Source]) -> frozenset[str]:
    """Return the splits that have files of their own.

    Args:
      sources: the pieces of all files.
    """
    return frozenset(source.group for source in sources) & set(SPLITS)


class AssignedBatch(NamedTuple):
    """A batch, with the split of each of its reviews."""

    batch: Batch
    keys: np.ndarray
    """The `text_keys` of its reviews, uint64 [reviews]."""
    split: np.ndarray
    """`train`, `eval` or `test` for each review, str [reviews]."""
    duplicate_in: np.ndarray
    """The held-out split whose files contain the same text, str [reviews]; empty for a review that
    is no duplicate. Of several splits it is the one with the highest priority."""


def assign_batch(
    batch: Batch,
    group: str,
    splitting: Splitting,
    held_out: HeldOut,
    priorities: Mapping[str, int] = HELD_OUT,
) -> AssignedBatch:
    """Assign a split to each review of a batch, and find the duplicates of held-out reviews.

    Args:
      batch: the reviews.
      group: the group of their file.
      splitting: how the splits are made.
      held_out: the text keys of the reviews in the files of groups with a priority.
      priorities: group -> priority. A text in the files of several groups belongs to the group with
        the highest priority; the priority of other groups is 0.
    """
    keys = text_keys(batch.texts)
    duplicate_in = np.full(len(keys), "", "U5")
    for name, priority in priorities.items():  # the highest priority last
        found = held_out.get(name, keys[:0])
        if priority > priorities.get(group, 0) and len(found):
            index = np.minimum(np.searchsorted(found, keys), len(found) - 1)
            duplicate_in[found[index] == keys] = name
    return AssignedBatch(batch, keys, assign_splits(keys, group, splitting), duplicate_in)


def text_keys(texts: Sequence[bytes]) -> np.ndarray:
    """Return a hash of each text, uint64 of shape [len(texts)]."""
    digest = hashlib.blake2b
    return np.frombuffer(b"".join([digest(t, digest_size=8).digest() for t in texts]), "<u8")


def assign_splits(keys: np.ndarray, group: str, splitting: Splitting) -> np.ndarray:
    """Return the split of each text.

    Args:
      keys: the `text_keys` of the texts, uint64 [texts].
      group: the group of their file.
      splitting: how the splits are made.

    Returns:
      `train`, `eval` or `test` for each text, str [texts].
    """
    if group in HELD_OUT:
        return np.full(len(keys), group)
    split = np.full(len(keys), "train")
    part = parts_of_keys(keys)
    for name, parts in splitting.fractions.parts(splitting.named).items():
        split[(part >= parts.start) & (part < parts.stop)] = name
    return split


def assign_shards(keys: np.ndarray, shards: int) -> np.ndarray:
    """Return the shard of each text, so that equal texts are in one shard, uint64 [texts].

    Args:
      keys: the `text_keys` of the texts, uint64 [texts].
      shards: the number of shards.
    """
    return (keys >> np.uint64(8)) % np.uint64(shards)


def are_over(keys: np.ndarray, split: np.ndarray, limits: Limits) -> np.ndarray:
    """Return whether each review is over the limit of its split, bool [reviews].

    Args:
      keys: the text keys of the reviews, uint64 [reviews].
      split: the split of each review, str [reviews].
      limits: the limits.
    """
    over = np.zeros(len(keys), bool)
    for name, kept in limits.items():
        over |= (split == name) & (_ranges(keys) >= kept)
    return over


def count_batch(assigned: AssignedBatch, over: np.ndarray) -> LineCounts:
    """Return the counts of the lines of a batch.

    Args:
      assigned: the batch.
      over: the result of `are_over`, bool [reviews].
    """
    batch = assigned.batch
    unique = assigned.duplicate_in == ""
    splits, numbers = np.unique(assigned.split[unique & ~over], return_counts=True)
    rejected = Counter(item.reason for item in batch.rejected)
    rejected[DUPLICATE] = int(np.count_nonzero(~unique))
    return LineCounts(
        examples=Counter(dict(zip(splits.tolist(), numbers.tolist(), strict=True))),
        neutral=len(batch.neutrals),
        over_max_examples=int(np.count_nonzero(unique & over)),
        rejected=+rejected,
        lost_bytes=batch.lost,
    )


def find_held_out(pipeline: beam.Pipeline, sources: Sequence[Source]) -> Any:
    """Return a `HeldOut` for `read_unit`, or a side input that contains one.

    Args:
      pipeline: the pipeline that reads the held-out files, if there are any.
      sources: the pieces of all files.

    Raises:
      InputError: a file cannot be read. The pipeline raises it when it runs.
    """
    import apache_beam as beam  # `amazon-reviews data check` uses this module without Beam

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
        | "JoinHeldOut" >> beam.Map(lambda _, found: join_keys(found), beam.pvalue.AsList(keys))
    )


def _read_keys(unit: Unit) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (group, `text_keys` of its reviews in the unit). A large group has several elements."""
    with ThreadPoolExecutor(cores()) as pool:
        found = join_keys(
            (group, text_keys(batch.texts)) for group, _, batch in read_in_turns(unit, pool)
        )
    for group, keys in found.items():
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            yield group, keys[start : start + _KEYS_AT_ONCE]


def join_keys(pairs: Iterable[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return a `HeldOut` of all keys.

    Args:
      pairs: (group, text keys of some of its reviews, uint64 [keys]). Groups and keys may repeat.
    """
    groups: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    for group, keys in pairs:
        groups[group].append(keys)
    return {group: np.unique(np.concatenate(arrays)) for group, arrays in groups.items()}


def find_limits(
    units: beam.PCollection, held_out: Any, splitting: Splitting, max_examples: Mapping[str, int]
) -> Any:
    """Return `Limits` for `read_unit`, or a side input that contains them.

    Args:
      units: a PCollection of `Unit`. Their files are read only if there is a limit.
      held_out: the result of `find_held_out`.
      splitting: how the splits are made.
      max_examples: split -> maximum number of its reviews; a split without a limit is missing.

    Raises:
      InputError: a file cannot be read. The pipeline raises it when it runs.
    """
    if not max_examples:
        return {}
    import apache_beam as beam

    return beam.pvalue.AsDict(
        units
        | "CountRanges" >> beam.FlatMap(_count_unit, held_out, splitting, frozenset(max_examples))
        | "SumRanges" >> beam.CombinePerKey(lambda counts: np.sum(list(counts), axis=0))
        | "FindLimits"
        >> beam.MapTuple(lambda split, n: (split, find_limit(n, max_examples[split])))
    )


def _count_unit(
    unit: Unit, held_out: HeldOut, splitting: Splitting, limited: frozenset[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (limited split, number of its reviews of a unit in each range, int64 [ranges])."""
    counts = {split: np.zeros(1 << _RANGE_BITS, np.int64) for split in limited}
    with ThreadPoolExecutor(cores()) as pool:
        for group, _, batch in read_in_turns(unit, pool):
            assigned = assign_batch(batch, group, splitting, held_out)
            for split, total in counts.items():
                chosen = (assigned.split == split) & (assigned.duplicate_in == "")
                total += count_ranges(assigned.keys[chosen])
    yield from counts.items()


def count_ranges(keys: np.ndarray) -> np.ndarray:
    """Return the number of text keys (uint64) in each of the 65,536 ranges, int64 [ranges]."""
    return np.bincount(_ranges(keys), minlength=1 << _RANGE_BITS)


def find_limit(counts: np.ndarray, max_examples: int) -> int:
    """Return the number of the lowest ranges that a split keeps.

    Args:
      counts: the number of the split's reviews in each range, int64 [ranges].
      max_examples: the maximum number of reviews in all ranges that are kept.
    """
    return int(np.searchsorted(np.cumsum(counts), max_examples, side="right"))


def _ranges(keys: np.ndarray) -> np.ndarray:
    return (keys >> np.uint64(64 - _RANGE_BITS)).astype(np.int64)
