"""Batches from transformed TFRecords, as a stream: memory does not grow with the data.

A split is divided into a shard for each process that reads it. The shards cover the split and do
not overlap. Every process reads the same number of batches, so none waits for another.
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
from examples.counts import NGRAMS, ClassCounter, count_examples, read_class_counts
from examples.tfrecords import without_autotune
from preprocessing import features
from trainer_module.cluster.collective import Collective
from trainer_module.inputs.batches import BatchSpec, length_batches
from trainer_module.settings import TrainingJob

_MAX_IMBALANCE = 1.1
"""The maximum size of a shard of whole files, as a multiple of the mean."""
_COUNTED_BATCH = 4096
_BLOCK = 16
"""Examples that are read and shuffled as one element.

Most of the cost of an Example in tf.data is a cost per element; the effect on batches of hundreds
is negligible."""
_FILES_AT_ONCE = 8


@dataclass(frozen=True)
class Split:
    """The gzipped TFRecord files of a split, or of the shard of it that one process reads.

    Attributes:
      files, counts: the files, and the number of the shard's Examples in each.
      index, of: in each file, the shard is every `of`-th Example, starting at `index`.
    """

    files: tuple[str, ...]
    counts: tuple[int, ...]
    index: int = 0
    of: int = 1

    @classmethod
    def find(cls, patterns: Sequence[str], collective: Collective | None = None) -> Split:
        """Find the files and count their Examples.

        Args:
          patterns: paths in whose last part `*` and `?` are wildcards.
          collective: the processes, each of which counts some of the files and calls this; None:
            this process counts all.

        Raises:
          InputError: a file is damaged.
          tensorflow.errors.OpError: a file cannot be read, or another process is gone.
        """
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

    def shards(self, processes: int) -> list[Split]:
        """Return a shard for each process: whole files, or parts of each file if files differ."""
        by_file: list[list[int]] = [[] for _ in range(processes)]
        loads = [0] * processes
        for count, place in sorted(zip(self.counts, range(len(self.counts)), strict=True))[::-1]:
            least = loads.index(min(loads))
            by_file[least].append(place)
            loads[least] += count
        if max(loads) * processes <= _MAX_IMBALANCE * self.examples:
            return [
                Split(
                    tuple(self.files[place] for place in sorted(places)),
                    tuple(self.counts[place] for place in sorted(places)),
                )
                for places in by_file
            ]
        parts = [
            tuple(len(range(index, count, processes)) for count in self.counts)
            for index in range(processes)
        ]
        return [Split(self.files, part, index, processes) for index, part in enumerate(parts)]

    def blocks(self, shuffle_buffer: int, seeds: tf.Tensor) -> tf.data.Dataset:
        """Return a pass in blocks of serialized Examples, string [_BLOCK] or shorter.

        With a `shuffle_buffer` the files are in another order for other seeds, and a buffer of
        about this many Examples is shuffled; with 0 the pass is in order.

        Args:
          shuffle_buffer: Examples in the shuffle buffer.
          seeds: int64 [2] or longer; the seeds of the files and of the blocks.
        """

        def of_file(name: tf.Tensor) -> tf.data.Dataset:
            examples = tf.data.TFRecordDataset(name, compression_type="GZIP")
            if self.of > 1:
                examples = examples.shard(self.of, self.index)
            return examples.batch(_BLOCK)

        files = tf.data.Dataset.from_tensor_slices(tf.constant(self.files, tf.string))
        if shuffle_buffer:
            count = max(1, len(self.files))
            files = files.shuffle(count, seed=seeds[0], reshuffle_each_iteration=False)
        blocks = files.interleave(
            of_file,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        if not shuffle_buffer:
            return blocks
        buffer = max(1, shuffle_buffer // _BLOCK)
        return blocks.shuffle(buffer, seed=seeds[1], reshuffle_each_iteration=False)


def make_dataset(shard: Split, batching: BatchSpec) -> tf.data.Dataset:
    """Return one pass over `shard` in order, in batches.

    A batch is (inputs, label), or with static shapes (inputs, label, weight). inputs is
    {name: values}, NGRAMS ragged int64 [batch, (n-grams)], TOKENS int64 [batch, width] padded with
    0; label float32 [batch, 1]; weight float32 [batch].
    """
    batches = batching.count(shard.examples)
    return endless(shard, batching, max(1, batches)).take(batches)


def endless(
    shard: Split,
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
      shard: the Examples.
      batching: the form of the batches.
      wanted: batches in a pass, at least those of `shard`.
      shuffle_buffer: see `Split.blocks`.
      seed: with the number of the pass, determines its order if there is a `shuffle_buffer`.
      done: batches to skip at the beginning, for a resumed training.
      parse: whether the batches are parsed here, and not by `parse_on_worker`.
    """
    by_length = batching.by_length
    empty = wanted - batching.count(shard.examples)

    def one_pass(number: tf.Tensor) -> tf.data.Dataset:
        # The seeds of the files, of the blocks and of the batches.
        seeds = tf.random.stateless_uniform(
            [3], tf.stack([seed, number]), 0, tf.int64.max, tf.int64
        )
        blocks = shard.blocks(shuffle_buffer, seeds)
        if not by_length:
            batches = blocks.rebatch(batching.batch_size)
        else:
            records, shuffle = blocks.unbatch(), bool(shuffle_buffer)
            batches = length_batches(records, batching, shuffle=shuffle, seed=seeds[2])
        return batches.concatenate(batching.empty().repeat(empty)) if empty else batches

    number, done = divmod(done, wanted)
    batches = tf.data.Dataset.range(number, tf.int64.max).flat_map(one_pass).skip(done)
    # The batches of all passes together, and therefore in parallel across passes. Batches of
    # similar lengths are parsed already, because they are sorted by their words.
    if parse and not by_length:
        batches = batches.map(batching.parse, num_parallel_calls=tf.data.AUTOTUNE)
    return without_autotune(batches.prefetch(tf.data.AUTOTUNE))


class Inputs:
    """The train and the eval split of a job, as datasets for its strategy.

    Every process makes batches for its own replicas from its own shard. Under parameter servers
    only the coordinator reads, and a step is the work of a single worker. The coordinator sends
    serialized Examples, which are a third of the parsed ones in bytes, and the workers parse them.
    Batches of words are parsed before, because they are sorted by length.

    Args:
      job: the files and the settings.
      feature_names: the features that the model reads.
      strategy: the strategy, under which the datasets are distributed.
      collective: sums over the processes that train synchronously, all of which call this.

    Raises:
      ValueError: a split has no Example.
      InputError: a file is damaged.
      tensorflow.errors.OpError: a file cannot be read, or another process of the cluster is gone.
    """

    def __init__(
        self,
        job: TrainingJob,
        feature_names: tuple[str, ...],
        strategy: tf.distribute.Strategy,
        collective: Collective,
    ):
        training = job.training
        self._job, self._strategy, self._collective = job, strategy, collective
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
        self.train = Split.find(job.train_files, collective)
        self.evaluation = Split.find(job.eval_files, collective)
        for split, patterns in ((self.train, job.train_files), (self.evaluation, job.eval_files)):
            if not split.examples:
                raise ValueError(f"no Example in {', '.join(patterns)}: the split is empty")
        self.global_batch = training.batch_size_per_replica * strategy.num_replicas_in_sync
        """Examples a step, over all replicas."""
        shards = self.train.shards(collective.processes)
        self._own_examples = shards[collective.process].examples
        self.steps = self._steps(self.train)
        self.eval_steps = self._steps(self.evaluation)

    def train_dataset(self, first_step: int) -> Any:
        """Return the train split, endless and shuffled, from `first_step` on.

        Returns:
          A dataset, or a DistributedDataset with a batch for each replica of this process: (inputs,
          label, and with static shapes the weight), see `make_dataset`. Under parameter servers the
          batches are not parsed, see `parse_on_worker`.
        """
        shuffle_buffer = self._job.training.shuffle_buffer
        return self._distributed(self.train, self.steps, first_step, shuffle_buffer)

    def eval_dataset(self) -> Any:
        """Return the eval split, endless and in order; its form is that of `train_dataset`."""
        return self._distributed(self.evaluation, self.eval_steps, 0, 0)

    def examples_of_step(self, step: int) -> int:
        """Return the number of Examples that this process's first replica trains on in a step.

        Steps are counted from 0 over all epochs. In an epoch only the last batch of a shard is
        short, and the batches after it are empty.
        """
        batch_size = self._batching.batch_size
        before = (step % self.steps) * self._replicas_here * batch_size
        return min(max(self._own_examples - before, 0), batch_size)

    def parse_on_worker(self, batch: Any) -> Any:
        """Parse a batch that the coordinator has sent, on a worker."""
        # Batches of similar lengths are sorted by their parsed words.
        return batch if self._batching.by_length else self._batching.parse(batch)

    def class_counts(self, kind: str) -> np.ndarray:
        """Return counts of the train split by class, LABELS float64 [2] or NGRAMS [2, buckets].

        If Transform has not stored them, each synchronous process counts those of a shard.

        Raises:
          InputError: a file is damaged.
          tensorflow.errors.OpError: a file cannot be read, or another process is gone.
        """
        transform, names = self._batching.transform, [features.NGRAMS] if kind == NGRAMS else []
        buckets = transform.ngram_buckets if names else 0
        stored = read_class_counts(self._job.train_files, kind, buckets)
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
        return math.ceil(self._batching.count(largest) / self._replicas_here)

    def _distributed(self, split: Split, steps: int, first_step: int, shuffle_buffer: int) -> Any:
        def of_process(process: int, processes: int) -> tf.data.Dataset:
            return endless(
                split.shards(processes)[process],
                self._batching,
                steps * self._replicas_here,
                shuffle_buffer=shuffle_buffer,
                seed=self._job.training.seed,
                done=first_step * self._replicas_here,
                parse=not self._by_coordinator,
            )

        if self._by_coordinator:
            return of_process(0, 1)
        return self._strategy.distribute_datasets_from_function(
            lambda context: of_process(context.input_pipeline_id, context.num_input_pipelines)
        )
