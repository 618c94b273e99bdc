"""Assemble the splits of a window from its spans, each of which was read alone.

A span is read without regard to the others: its reviews are split into train and eval by the hash
of their text. In a window, the older spans keep these files as they are. The newest span is the
test split, from which the texts of older spans are removed: so the files of an older span are the
same in every window, and the cost of a new span does not depend on the size of the window. A model
that was trained on earlier spans has not seen the test split either.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from apache_beam.io.filesystems import FileSystems

from components.line_counts import DUPLICATE, SPLITS, LineCounts
from components.review_example_gen.read_unit import Shard, UnitResult
from components.review_example_gen.spans import NEWER, OLDER
from components.review_example_gen.splits import (
    Limits,
    Splitting,
    are_over,
    assign_splits,
    count_ranges,
    find_limit,
)
from components.review_example_gen.unit_index import UnitIndex, load_index
from core.machine import cores
from examples.split_fractions import SplitFractions
from examples.tfrecords import read, records
from examples.writer import ShardWriter, text_level
from preprocessing.reading.open_files import link_file

READ_AS = OLDER
"""The group of the files of every span while it is read."""
_BATCH = 1024


class ReadSpan(NamedTuple):
    """A span that was read: its name, and its units."""

    name: str
    units: Sequence[UnitResult]


class _FirstSeen(NamedTuple):
    """The texts of the newest span, and where each of them was seen first."""

    keys: np.ndarray
    """The sorted, unique text keys, uint64 [keys]."""
    older: np.ndarray
    """The index of the first older span that contains the text, or -1, int32 [keys]."""


class _Part(NamedTuple):
    """A unit in a window: what happens to each of its reviews."""

    unit: UnitResult
    reviews: UnitIndex
    written_as: np.ndarray
    """The split as which the review was written when its span was read, str [reviews]."""
    split: np.ndarray
    """The split in the window, str [reviews]."""
    older: np.ndarray
    """The index of the first older span with the same text, or -1, int [reviews]; of an older span
    it is always -1."""


def split_older(fractions: SplitFractions) -> Splitting:
    """Return how the texts of an older span are split: train and eval, but no test.

    Args:
      fractions: the sizes of the splits without files of their own.
    """
    return Splitting(frozenset({OLDER, NEWER}), fractions)


def assemble(
    spans: Sequence[ReadSpan],
    max_examples: Mapping[str, int],
    splitting: Splitting,
    scratch: str,
) -> list[UnitResult]:
    """Write the files of a window.

    Args:
      spans: the spans in ascending order, at least two.
      max_examples: split -> maximum number of its reviews; a split without a limit is missing.
      splitting: the result of `split_older` with which the spans were read.
      scratch: an existing folder for the files. A file without a change is a link or a copy.

    Returns:
      The units of all spans, numbered in their order, with the splits and counts in the window.

    Raises:
      InputError: a file of a span is damaged.
      OSError, tensorflow.errors.OpError: a file cannot be read or written.
    """
    *older, newest = spans
    seen = _first_seen(older, newest)
    limits = _find_limits(_parts(spans, seen, splitting), max_examples) if max_examples else {}
    names = [span.name for span in older]
    return [
        _assemble_unit(part._replace(unit=part.unit._replace(unit=number)), limits, names, scratch)
        for number, part in enumerate(_parts(spans, seen, splitting))
    ]


def _first_seen(older: Sequence[ReadSpan], newest: ReadSpan) -> _FirstSeen:
    keys = np.unique(
        np.concatenate(
            [np.zeros(0, np.uint64), *(load_index(u.index_file).keys for u in newest.units)]
        )
    )
    first = np.full(len(keys), -1, np.int32)
    for number, span in reversed(list(enumerate(older))):
        for unit in span.units:
            first[_positions(keys, np.unique(load_index(unit.index_file).keys))] = number
    return _FirstSeen(keys, first)


def _positions(keys: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the indices in the sorted `keys` of those that are in `others`."""
    if not len(keys):
        return np.zeros(0, np.int64)
    at = np.minimum(np.searchsorted(keys, others), len(keys) - 1)
    return at[keys[at] == others]


def _parts(spans: Sequence[ReadSpan], seen: _FirstSeen, splitting: Splitting) -> Iterator[_Part]:
    """Yield the units of all spans in their order; only one index is in memory at a time."""
    for span in spans:
        for unit in span.units:
            index = load_index(unit.index_file)
            written_as = assign_splits(index.keys, READ_AS, splitting)
            if span is spans[-1]:
                split = np.full(len(index.keys), NEWER)
                older = seen.older[np.searchsorted(seen.keys, index.keys)]
            else:
                split = written_as
                older = np.full(len(index.keys), -1, np.int32)
            yield _Part(unit, index, written_as, split, older)


def _find_limits(parts: Iterator[_Part], max_examples: Mapping[str, int]) -> Limits:
    counts = {split: count_ranges(np.zeros(0, np.uint64)) for split in max_examples}
    for part in parts:
        for split, total in counts.items():
            total += count_ranges(part.reviews.keys[(part.split == split) & (part.older < 0)])
    return {split: find_limit(total, max_examples[split]) for split, total in counts.items()}


def _assemble_unit(
    part: _Part, limits: Limits, older_names: Sequence[str], scratch: str
) -> UnitResult:
    """Return a unit with the files and the counts that it has in the window."""
    over = are_over(part.reviews.keys, part.split, limits)
    kept = (part.older < 0) & ~over
    return part.unit._replace(
        shards=tuple(_shards(part, kept, scratch)),
        rejected=_rejected(part, older_names, scratch),
        counts=_counts(part, kept, over),
        classes=_classes(part, kept),
    )


def _shards(part: _Part, kept: np.ndarray, scratch: str) -> Iterator[Shard]:
    """Write the shards of a unit; yield each of them.

    Args:
      part: the unit.
      kept: whether each review is an Example, bool [reviews].
      scratch: the folder of the files.
    """
    unit, reviews = part.unit, part.reviews
    waiting = {
        split: iter(np.unique(reviews.shards[part.written_as == split]).tolist())
        for split in SPLITS
    }
    for number, (split, path, count) in enumerate(unit.shards):
        # `read_unit` writes the shards of a split in ascending order.
        chosen = np.flatnonzero(
            (part.written_as == split) & (reviews.shards == next(waiting[split]))
        )
        assert len(chosen) == count, path
        target = os.path.join(scratch, f"{unit.unit:05d}-{number:03d}.gz")
        left = kept[chosen]
        if left.any():
            if left.all():
                link_file(path, target)
            else:
                _write_some(path, left, target)
            yield Shard(part.split[chosen[0]].item(), target, int(np.count_nonzero(left)))


def _write_some(path: str, kept: np.ndarray, target: str) -> None:
    """Write the Examples of a shard that are kept, in their order.

    Args:
      path: the shard.
      kept: whether each of its Examples is kept, bool [examples].
      target: the new file.

    Raises:
      InputError: the shard is damaged.
      tensorflow.errors.OpError: a file cannot be read or written.
    """
    at = 0
    with ThreadPoolExecutor(cores()) as pool:
        writer = ShardWriter(target, text_level(target), pool)
        source = records(path, len(kept)).batch(_BATCH).prefetch(tf.data.AUTOTUNE)
        for batch in read(source, [path]):
            examples = batch.numpy()
            chosen = np.flatnonzero(kept[at : at + len(examples)]).tolist()
            writer.write([examples[index] for index in chosen])
            at += len(examples)
        writer.close()


def _rejected(part: _Part, older_names: Sequence[str], scratch: str) -> str:
    """Return the file of the rejected lines of a unit, with those of older spans.

    Args:
      part: the unit.
      older_names: the names of the older spans.
      scratch: the folder of a new file.

    Raises:
      OSError: a file cannot be read or written.
    """
    unit, reviews = part.unit, part.reviews
    repeated = np.flatnonzero(part.older >= 0).tolist()
    if not repeated:
        return unit.rejected
    path = os.path.join(scratch, f"{unit.unit:05d}.jsonl")
    with FileSystems.create(path) as target:
        with FileSystems.open(unit.rejected) as source:
            target.write(source.read())
        for review in repeated:
            file, piece, _ = unit.pieces[reviews.pieces[review]]
            detail = f"the same text is in span {older_names[part.older[review]]}"
            line = [file, piece, int(reviews.positions[review]), DUPLICATE, detail]
            target.write(json.dumps(line).encode() + b"\n")
    return path


def _counts(part: _Part, kept: np.ndarray, over: np.ndarray) -> dict[str, LineCounts]:
    """Return path of a file -> the counts of its lines in the window.

    Args:
      part: the unit.
      kept: whether each review is an Example, bool [reviews].
      over: whether each review is over the limit of its split, bool [reviews].
    """
    paths = list(part.unit.counts)
    of_piece = np.array([paths.index(piece.path) for piece in part.unit.pieces], np.int64)
    of_review = of_piece[part.reviews.pieces]

    def count(chosen: np.ndarray) -> list[int]:
        return np.bincount(of_review[chosen], minlength=len(paths)).tolist()

    examples = {split: count(kept & (part.split == split)) for split in SPLITS}
    repeated, beyond = count(part.older >= 0), count(over & (part.older < 0))
    return {
        path: LineCounts(
            examples=+Counter({split: numbers[at] for split, numbers in examples.items()}),
            neutral=before.neutral,
            over_max_examples=beyond[at],
            rejected=before.rejected + Counter({DUPLICATE: repeated[at]}),
            lost_bytes=before.lost_bytes,
        )
        for at, (path, before) in enumerate(part.unit.counts.items())
    }


def _classes(part: _Part, kept: np.ndarray) -> dict[str, Counter[int]]:
    """Return split -> label -> number of its Examples.

    Args:
      part: the unit.
      kept: whether each review is an Example, bool [reviews].
    """
    found = {}
    for split in SPLITS:
        labels = part.reviews.labels[kept & (part.split == split)]
        classes, numbers = np.unique(labels, return_counts=True)
        found[split] = Counter(dict(zip(classes.tolist(), numbers.tolist(), strict=True)))
    return found
