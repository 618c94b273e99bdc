"""The Beam stages of ReviewExampleGen: read and route reviews, write TFRecord shards, count.

Reading, encoding and writing are fused into one stage whose elements are batches of reviews: no
review is ever held in a shuffle, so memory does not grow with the input.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import tensorflow as tf
from apache_beam.io.filesystems import FileSystems

from components.review_example_gen import splits
from preprocessing.features import encode_example
from preprocessing.progress import Progress
from preprocessing.readers import Neutral, ReadOptions, Rejected, Review, read_reviews

DUPLICATE = "duplicate_across_splits"
"""Reason of a review that is readable but also stands in a held-out split."""

REJECTED, COUNTS = "rejected", "counts"
_BATCH = 2_000
_GZIP_LEVEL = 1
"""Four times as fast as the default level for shards a quarter larger."""


class SourceFile(NamedTuple):
    """One raw file, the group it was named in, and over how many shards its reviews are spread."""

    group: str
    path: str
    shards: int


class Routing(NamedTuple):
    """What is the same for every file: how to read, and which groups have files of their own."""

    options: ReadOptions
    named: frozenset[str]


class Routed(NamedTuple):
    """A review, its split, key and rank, and the held-out split that has the same text, if any."""

    review: Review
    text: bytes
    split: str
    key: int
    rank: int
    stands_in: str | None


def _route(
    source: SourceFile, routing: Routing, selection: splits.Selection
) -> Iterator[Routed | Neutral | Rejected]:
    name = os.path.basename(source.path)
    for record in read_reviews(source.path, routing.options):
        if not isinstance(record, Review):
            yield record
            continue
        text = record.text.encode()
        key = splits.text_key(text)
        yield Routed(
            record,
            text,
            splits.assign_split(key, source.group, routing.named),
            key,
            splits.rank_key(key, name, record.position),
            selection.stands_elsewhere(key, source.group),
        )


class HeldOutKeys(beam.DoFn):
    """SourceFile -> (group, uint64 text keys of its reviews)."""

    def __init__(self, routing: Routing):
        self._routing = routing

    def process(self, source: SourceFile) -> Iterator[tuple[str, np.ndarray]]:
        routed = _route(source, self._routing, splits.Selection())
        keys = (item.key for item in routed if isinstance(item, Routed))
        yield source.group, np.fromiter(keys, np.uint64)


class RankKeys(beam.DoFn):
    """SourceFile -> (split, uint64 rank keys of the reviews that may be kept in it)."""

    def __init__(self, routing: Routing):
        self._routing = routing

    def process(
        self, source: SourceFile, held_out: dict[str, np.ndarray]
    ) -> Iterator[tuple[str, np.ndarray]]:
        ranks: dict[str, list[int]] = defaultdict(list)
        for item in _route(source, self._routing, splits.Selection(held_out)):
            if isinstance(item, Routed) and item.stands_in is None:
                ranks[item.split].append(item.rank)
        for split, found in ranks.items():
            yield split, np.array(found, np.uint64)


class ReadReviews(beam.DoFn):
    """SourceFile -> batches {(split, shard): [serialized Example]}.

    Side outputs: `rejected`, a dict per line that is no Example; `counts`, one Counter per file
    that accounts for every line that was read.
    """

    def __init__(self, routing: Routing):
        self._routing = routing

    def process(
        self, source: SourceFile, held_out: dict[str, np.ndarray], last_rank: dict[str, int]
    ) -> Iterator[Any]:
        selection = splits.Selection(held_out, last_rank)
        counts: Counter[str] = Counter()
        batch: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        waiting = 0
        with Progress("reviews", source.path) as progress:
            for item in _route(source, self._routing, selection):
                progress.advance()
                if isinstance(item, Neutral):
                    counts["neutral"] += 1
                elif isinstance(item, Rejected):
                    counts[f"rejected/{item.reason}"] += 1
                    yield _rejected(source, item)
                elif item.stands_in:
                    counts[f"rejected/{DUPLICATE}"] += 1
                    detail = f"the same text is in the {item.stands_in} files"
                    yield _rejected(source, Rejected(item.review.position, DUPLICATE, detail))
                elif selection.is_over_the_cap(item.split, item.rank):
                    counts["over_max_examples"] += 1
                else:
                    counts[f"examples/{item.split}"] += 1
                    shard = (item.key >> 8) % source.shards
                    batch[item.split, shard].append(encode_example(item.review, item.text))
                    waiting += 1
                    if waiting == _BATCH:
                        yield dict(batch)
                        batch.clear()
                        waiting = 0
        if waiting:
            yield dict(batch)
        yield beam.pvalue.TaggedOutput(COUNTS, counts)


def _rejected(source: SourceFile, item: Rejected) -> beam.pvalue.TaggedOutput:
    line = {
        "file": source.path,
        "position": item.position,
        "reason": item.reason,
        "detail": item.detail,
    }
    return beam.pvalue.TaggedOutput(REJECTED, line)


class WriteShards(beam.DoFn):
    """Batches -> (split, path of a closed, not yet published TFRecord file).

    Each bundle writes files of its own under a scratch folder, so a bundle that Beam tries again
    leaves nothing behind in the splits.
    """

    def __init__(self, scratch: str):
        self._scratch = scratch
        self._writers: dict[tuple[str, int], tuple[str, tf.io.TFRecordWriter]] = {}

    def start_bundle(self) -> None:
        self._writers = {}

    def process(self, batch: dict[tuple[str, int], list[bytes]]) -> None:
        for target, examples in batch.items():
            if target not in self._writers:
                path = FileSystems.join(self._scratch, f"{uuid.uuid4().hex}.gz")
                options = tf.io.TFRecordOptions("GZIP", compression_level=_GZIP_LEVEL)
                self._writers[target] = path, tf.io.TFRecordWriter(path, options)
            writer = self._writers[target][1]
            for example in examples:
                writer.write(example)

    def finish_bundle(self) -> Iterator[Any]:
        for (split, _), (path, writer) in sorted(self._writers.items()):
            writer.close()
            yield beam.utils.windowed_value.WindowedValue(
                (split, path),
                beam.transforms.window.GlobalWindow().max_timestamp(),
                [beam.transforms.window.GlobalWindow()],
            )


def publish_shards(split_folder: str, paths: Iterable[str]) -> None:
    """Moves closed shards into the split's folder under TFX's names.

    An empty split gets one empty shard: later components read the pattern, not the list.
    """
    tf.io.gfile.makedirs(split_folder)
    sources = sorted(paths)
    total = max(len(sources), 1)
    targets = [
        os.path.join(split_folder, f"data_tfrecord-{index:05d}-of-{total:05d}.gz")
        for index in range(total)
    ]
    if not sources:
        tf.io.TFRecordWriter(targets[0], tf.io.TFRecordOptions("GZIP")).close()
    else:
        FileSystems.rename(sources, targets)


def add_counters(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total
