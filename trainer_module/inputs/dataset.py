"""Batches from transformed TFRecords, as a stream: memory does not grow with the data.

A split is divided into one `Shard` for each process that reads it. The shards cover the split and
do not overlap. Every process reads the same number of batches, so none waits for another.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from core.files import list_files
from preprocessing import features
from preprocessing.settings import Transform
from trainer_module.cluster.collective import Collective
from trainer_module.inputs.autotune import without_autotune
from trainer_module.inputs.length_batches import length_batches, window_batches
from trainer_module.inputs.shards import Reader, Shard
from trainer_module.inputs.stored import NGRAMS, ClassCounter, count_examples, read_class_counts
from trainer_module.settings import TrainingJob

NGRAM_PADDING = -1
"""The id that pads the rows of NGRAMS to static shapes; no n-gram has this id."""
_MAX_IMBALANCE = 1.1
"""The maximum size of a shard of whole files, as a multiple of the mean."""
_COUNTED_BATCH = 4096


@dataclass(frozen=True)
class Split:
    """The gzipped TFRecord files of a split, and the number of Examples in each."""

    files: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def find(cls, patterns: Sequence[str], collective: Collective | None = None) -> Split:
        """Find the files and count their Examples; each process counts some of the files."""
        files = sorted(
            {file for pattern in patterns for file in list_files(*os.path.split(pattern))}
        )
        process, processes = (collective.process, collective.processes) if collective else (0, 1)
        counts = [0] * len(files)
        counts[process::processes] = count_examples(files[process::processes])
        if collective and files:
            # Every reduction supports float64, which is exact up to 2^53.
            counts = collective.sum(tf.constant(counts, tf.float64)).numpy().tolist()
        return cls(tuple(files), tuple(map(int, counts)))

    @property
    def examples(self) -> int:
        return sum(self.counts)

    def shards(self, processes: int) -> list[Shard]:
        """Return a shard for each process: whole files, or parts of each file if files differ."""
        by_file: list[list[int]] = [[] for _ in range(processes)]
        loads = [0] * processes
        for count, place in sorted(zip(self.counts, range(len(self.counts)), strict=True))[::-1]:
            least = loads.index(min(loads))
            by_file[least].append(place)
            loads[least] += count
        if max(loads) * processes <= _MAX_IMBALANCE * self.examples:
            return [
                Shard(
                    tuple(self.files[place] for place in sorted(places)),
                    tuple(self.counts[place] for place in sorted(places)),
                )
                for places in by_file
            ]
        parts = [
            tuple(len(range(index, count, processes)) for count in self.counts)
            for index in range(processes)
        ]
        return [Shard(self.files, part, index, processes) for index, part in enumerate(parts)]


@dataclass(frozen=True)
class BatchSpec:
    """The parameters by which Examples become batches.

    Attributes:
      names: the model's features, of `preprocessing.features`, and their settings `transform`.
      replicas: number of replicas of this process. Batches of words for the same step have a
        similar width, so no replica waits for another.
      static_shapes: every batch has the same shape, as XLA requires: rows are padded to the maximum
        length, and the last batch with Examples of weight 0.
    """

    names: tuple[str, ...]
    transform: Transform
    batch_size: int
    replicas: int = 1
    static_shapes: bool = False

    def spec(self) -> dict[str, Any]:
        """Return the tf.io parsing spec."""
        inputs = {
            name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in self.names
        }
        return {features.LABEL: tf.io.FixedLenFeature([1], tf.int64), **inputs}

    @property
    def by_length(self) -> bool:
        """Whether the reviews of a batch have similar lengths."""
        return features.TOKENS in self.names and not self.static_shapes

    @property
    def window(self) -> int:
        """The number of batches that are sorted by length together."""
        return window_batches(self.batch_size, self.replicas)

    def batches(self, examples: int) -> int:
        return math.ceil(examples / self.batch_size)

    def parse(self, serialized: tf.Tensor) -> tuple[Any, ...]:
        """Parse a batch, a string [batch], into the tensors that `make_dataset` describes."""
        inputs = tf.io.parse_example(serialized, self.spec())
        label = tf.cast(inputs.pop(features.LABEL), tf.float32)
        if not self.static_shapes:
            return inputs, label
        examples = tf.shape(label)[0]
        label = tf.pad(label, [[0, self.batch_size - examples], [0, 0]])
        label = tf.ensure_shape(label, [self.batch_size, 1])
        weight = tf.cast(tf.range(self.batch_size) < examples, tf.float32)
        return {name: _padded(name, ids, self) for name, ids in inputs.items()}, label, weight


def make_dataset(shard: Shard, batching: BatchSpec) -> tf.data.Dataset:
    """Return one pass over `shard` in order, in batches.

    A batch is (inputs, label), or with static shapes (inputs, label, weight). inputs is
    {name: values}, NGRAMS ragged int64 [batch, (n-grams)], TOKENS int64 [batch, width] padded with
    0; label float32 [batch, 1]; weight float32 [batch].
    """
    batches = batching.batches(shard.examples)
    return endless(shard, batching, max(1, batches)).take(batches)


def endless(
    shard: Shard,
    batching: BatchSpec,
    wanted: int,
    *,
    shuffle_buffer: int = 0,
    seed: int = 0,
    done: int = 0,
    parse: bool = True,
) -> tf.data.Dataset:
    """Return endless passes over `shard`, each padded with empty batches to `wanted` batches.

    Args:
      wanted: number of batches of a pass; at least the number of batches of the shard.
      shuffle_buffer, seed: see `Reader`.
      done: batches to skip at the beginning, for a resumed training. Skipped Examples are not
        parsed, and files that contain only skipped Examples are not opened.
      parse: whether the batches are parsed here, and not by `parse_on_worker`.
    """
    passes = _Passes(shard, batching, Reader(shard, shuffle_buffer, seed), wanted)
    number, done = divmod(done, wanted)
    later = tf.data.Dataset.range(number + bool(done), tf.int64.max).flat_map(passes.whole)
    if done:
        later = passes.rest(number, done).concatenate(later)
    # The batches of all passes together, and therefore in parallel across passes. Batches of
    # similar lengths are parsed already, because they are sorted by their words.
    if parse and not batching.by_length:
        later = later.map(batching.parse, num_parallel_calls=tf.data.AUTOTUNE)
    return without_autotune(later.prefetch(tf.data.AUTOTUNE))


class _Passes:
    """Passes over a shard in unparsed batches, each padded to `wanted` batches."""

    def __init__(self, shard: Shard, batching: BatchSpec, reader: Reader, wanted: int):
        self._batching = batching
        self._reader = reader
        self._batches = batching.batches(shard.examples)
        self._empty = wanted - self._batches

    def whole(self, number: Any) -> tf.data.Dataset:
        return self._filled(self._batched(self._reader.whole(number), number), self._empty)

    def rest(self, number: int, done: int) -> tf.data.Dataset:
        """Return pass `number` without its first `done` batches."""
        batching, real = self._batching, min(done, self._batches)
        windows = real // batching.window if batching.by_length else 0
        before = windows * batching.window if batching.by_length else real
        blocks = self._reader.rest(number, before * batching.batch_size)
        batches = self._batched(blocks, number, windows).skip(real - before)
        return self._filled(batches, self._empty - (done - real))

    def _batched(
        self, blocks: tf.data.Dataset, number: Any, first_window: int = 0
    ) -> tf.data.Dataset:
        batching = self._batching
        if not batching.by_length:
            return blocks.rebatch(batching.batch_size)
        return length_batches(
            blocks.unbatch(),
            batching.spec(),
            batching.batch_size,
            batching.transform.max_tokens,
            shuffle=self._reader.shuffles,
            seed=self._reader.seeds(number)[2],
            group=batching.replicas,
            window=batching.window,
            first_window=first_window,
        )

    def _filled(self, batches: tf.data.Dataset, empty: int) -> tf.data.Dataset:
        if not empty:
            return batches
        nothing: Any = tf.zeros([0], tf.string)
        if self._batching.by_length:
            inputs, label = self._batching.parse(nothing)
            tokens = inputs[features.TOKENS].to_tensor(shape=[None, 1])
            nothing = {**inputs, features.TOKENS: tokens}, label
        return batches.concatenate(tf.data.Dataset.from_tensors(nothing).repeat(empty))


def _padded(name: str, ids: tf.RaggedTensor, batching: BatchSpec) -> tf.Tensor:
    """Pad ids to [batch_size, width], where width is that of a review of `max_tokens` words."""
    transform = batching.transform
    if name == features.NGRAMS:
        words = transform.max_tokens + sum(transform.openings)
        width, filler = words * transform.ngrams, NGRAM_PADDING
    else:
        width, filler = transform.max_tokens, 0
    return ids.to_tensor(filler, shape=[batching.batch_size, width])


class Inputs:
    """The train and the eval split of a job, as datasets for its strategy.

    Every process makes batches for its own replicas from its own shard. Under parameter servers
    only the coordinator reads, and a step is the work of a single worker. The coordinator sends
    serialized Examples, which are a third of the parsed ones in bytes, and the workers parse them.
    Batches of words are parsed before, because they are sorted by length.
    """

    def __init__(
        self,
        job: TrainingJob,
        feature_names: tuple[str, ...],
        strategy: tf.distribute.Strategy,
        collective: Collective,
    ):
        training = job.training
        self._strategy, self._collective = strategy, collective
        self._by_coordinator = isinstance(strategy, tf.distribute.ParameterServerStrategy)
        self._replicas_here = strategy.num_replicas_in_sync // collective.processes
        self.static_shapes = training.jit_compile or isinstance(strategy, tf.distribute.TPUStrategy)
        """Whether all batches have the same shape, because the step is compiled."""
        self._batching = BatchSpec(
            feature_names,
            job.transform,
            training.batch_size_per_replica,
            self._replicas_here,
            self.static_shapes,
        )
        self._training = training
        self._train_files = job.train_files
        self.train = Split.find(job.train_files, collective)
        self.evaluation = Split.find(job.eval_files, collective)
        for split, patterns in ((self.train, job.train_files), (self.evaluation, job.eval_files)):
            if not split.examples:
                raise ValueError(f"no Example in {', '.join(patterns)}: the split is empty")
        self.global_batch = training.batch_size_per_replica * strategy.num_replicas_in_sync
        """Examples a step, over all replicas."""
        self.steps = self._steps(self.train)
        self.eval_steps = self._steps(self.evaluation)

    def train_dataset(self, first_step: int) -> Any:
        """Return the train split, endless and shuffled, from `first_step` on."""
        return self._distributed(self.train, first_step, self._training.shuffle_buffer)

    def eval_dataset(self) -> Any:
        """Return the eval split, endless and in order."""
        return self._distributed(self.evaluation, 0, 0)

    def parse_on_worker(self, batch: Any) -> Any:
        """Parse a batch that the coordinator has sent, on a worker."""
        # Batches of similar lengths are sorted by their parsed words.
        return batch if self._batching.by_length else self._batching.parse(batch)

    def class_counts(self, kind: str) -> np.ndarray:
        """Return counts of the train split by class, LABELS float64 [2] or NGRAMS [2, buckets].

        If Transform has not stored them, each synchronous process counts those of a shard.
        """
        transform, names = self._batching.transform, [features.NGRAMS] if kind == NGRAMS else []
        buckets = transform.ngram_buckets if names else 0
        stored = read_class_counts(self._train_files, kind, buckets)
        # All processes count if one of them finds no counts.
        if not self._collective.any(stored is None) and stored is not None:
            return stored.astype(np.float64)
        logging.info("Reading the train split once before the first step")
        shards = self.train.shards(self._collective.processes)
        batching = BatchSpec(tuple(names), transform, _COUNTED_BATCH)
        counter = ClassCounter(buckets)
        for inputs, label in make_dataset(shards[self._collective.process], batching):
            ngrams = {name: values.to_sparse() for name, values in inputs.items()}
            counter.add({**ngrams, features.LABEL: tf.cast(label, tf.int64)})
        # Every reduction supports float64, which is exact up to 2^53.
        return self._collective.sum(tf.constant(counter.counts[kind], tf.float64)).numpy()

    def _steps(self, split: Split) -> int:
        largest = max(shard.examples for shard in split.shards(self._collective.processes))
        return math.ceil(self._batching.batches(largest) / self._replicas_here)

    def _distributed(self, split: Split, first_step: int, shuffle_buffer: int) -> Any:
        def of_process(process: int, processes: int) -> tf.data.Dataset:
            return endless(
                split.shards(processes)[process],
                self._batching,
                self._steps(split) * self._replicas_here,
                shuffle_buffer=shuffle_buffer,
                seed=self._training.seed,
                done=first_step * self._replicas_here,
                parse=not self._by_coordinator,
            )

        if self._by_coordinator:
            return of_process(0, 1)
        return self._strategy.distribute_datasets_from_function(
            lambda context: of_process(context.input_pipeline_id, context.num_input_pipelines)
        )
