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

from examples.counts import NGRAMS, ClassCounter, read_class_counts
from examples.tfrecords import count_examples, find_files, records, without_autotune
from preprocessing import features
from preprocessing.fast.ngrams import NgramIds
from preprocessing.labels import Labels
from preprocessing.settings import ngram_rows
from trainer_module.cluster.collective import Collective
from trainer_module.inputs.batches import BatchSpec, length_batches
from trainer_module.settings import TrainingJob

_MAX_IMBALANCE = 1.1
"""The maximum size of a shard of whole files, as a multiple of the mean."""
_COUNTED_BATCH = 4096
_BLOCK = 16
"""Examples that are read and shuffled as one element.

Most of the cost of an Example in tf.data is a cost per element. The Examples of a block are
neighbours in a file, which have the same label if the file is sorted."""
_BLOCKS_IN_BATCH = 64
"""Minimum number of blocks in a batch; those of small batches are smaller than _BLOCK. With 4
blocks of 16 in a batch of 64, sorted texts of 77 intents had more than twice the loss in the first
epoch (the laboratory journal has the measurement)."""
_FILES_AT_ONCE = 8


@dataclass(frozen=True)
class Split:
    """The gzipped TFRecord files of a split, or of the shard of it that one process reads.

    Attributes:
      files, counts: the files, and the number of the shard's Examples in each file.
      index, stride: from each file, the shard has every `stride`-th Example, beginning at `index`.
    """

    files: tuple[str, ...]
    counts: tuple[int, ...]
    index: int = 0
    stride: int = 1

    @classmethod
    def find(cls, patterns: Sequence[str], collective: Collective | None = None) -> Split:
        """Find the files and count their Examples.

        Args:
          patterns: paths in whose last part `*` and `?` are wildcards.
          collective: the processes, each of which counts a part of the files. All of them call
            this. None: this process counts all files.

        Raises:
          InputError: a file is damaged, or one with a stored number of Examples was deleted.
          tensorflow.errors.OpError: a file cannot be read, or another process is gone.
        """
        files = sorted(
            {file for pattern in patterns for file in find_files(*os.path.split(pattern))}
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
        """The number of Examples."""
        return sum(self.counts)

    def shards(self, processes: int) -> list[Split]:
        """Return a shard for each process.

        A shard consists of whole files. If the sizes of such shards would differ too much, a shard
        consists of a part of each file.

        Args:
          processes: number of processes.
        """
        by_file: list[list[int]] = [[] for _ in range(processes)]
        loads = [0] * processes
        for count, number in sorted(zip(self.counts, range(len(self.counts)), strict=True))[::-1]:
            least = loads.index(min(loads))
            by_file[least].append(number)
            loads[least] += count
        if max(loads) * processes <= _MAX_IMBALANCE * self.examples:
            return [
                Split(
                    tuple(self.files[number] for number in sorted(numbers)),
                    tuple(self.counts[number] for number in sorted(numbers)),
                )
                for numbers in by_file
            ]
        parts = [
            tuple(len(range(index, count, processes)) for count in self.counts)
            for index in range(processes)
        ]
        return [Split(self.files, part, index, processes) for index, part in enumerate(parts)]

    def blocks(self, shuffle_buffer: int, seeds: tf.Tensor, size: int = _BLOCK) -> tf.data.Dataset:
        """Return a pass in blocks of serialized Examples, string [size] or shorter.

        Args:
          shuffle_buffer: approximate number of Examples in the shuffle buffer; 0: the pass is in
            order.
          seeds: int64 [2] or longer; the seeds of the order of the files and of the blocks.
          size: the number of Examples in a block.
        """

        def read_file(name: tf.Tensor, count: tf.Tensor) -> tf.data.Dataset:
            return records(name, count, self.index, self.stride).batch(size)

        files = tf.data.Dataset.from_tensor_slices(
            (tf.constant(self.files, tf.string), tf.constant(self.counts, tf.int64))
        )
        if shuffle_buffer:
            count = max(1, len(self.files))
            files = files.shuffle(count, seed=seeds[0], reshuffle_each_iteration=False)
        blocks = files.interleave(
            read_file,
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        if not shuffle_buffer:
            return blocks
        # TensorFlow allocates the whole buffer, also for fewer blocks.
        blocks_here = sum(math.ceil(count / size) for count in self.counts)
        buffer = max(1, min(shuffle_buffer // size, blocks_here))
        return blocks.shuffle(buffer, seed=seeds[1], reshuffle_each_iteration=False)


def make_dataset(shard: Split, batching: BatchSpec) -> tf.data.Dataset:
    """Return one pass over `shard` in order, in batches.

    Args:
      shard: the Examples.
      batching: the form of the batches.

    Returns:
      Batches of (inputs, label), or with static shapes (inputs, label, weight). inputs is
      {name: values}: NGRAMS ragged int64 [batch, (n-grams)], TOKENS int64 [batch, width] padded
      with 0. label is float32 [batch, 1]. weight is float32 [batch], 0 for padding.
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
    process: int = 0,
) -> tf.data.Dataset:
    """Return endless passes over `shard`, each padded with empty batches to `wanted` batches.

    Args:
      shard: the Examples.
      batching: the form of the batches.
      wanted: number of batches in a pass, at least that of `shard`.
      shuffle_buffer: see `Split.blocks`.
      seed: determines the order of each pass, together with the number of the pass. It has no
        effect without a `shuffle_buffer`.
      done: number of batches to skip at the beginning, for a resumed training.
      parse: whether the batches are parsed here, and not by `parse_on_worker`.
      process: the number of the process that reads the shard. The order of its files and blocks is
        another one than that of the other processes. Otherwise a step would have neighbours in a
        file, of which each process has every n-th Example, and in a sorted file these have the same
        label.
    """
    by_length = batching.by_length
    empty = wanted - batching.count(shard.examples)
    size = _BLOCK
    if shuffle_buffer and not by_length:
        # Batches of words are mixed again, in windows of many batches.
        size = min(_BLOCK, max(1, batching.batch_size // _BLOCKS_IN_BATCH))

    def one_pass(number: tf.Tensor) -> tf.data.Dataset:
        # The seeds of the files, of the blocks and of the batches.
        random = tf.random.stateless_uniform(
            [3 + 2 * process], tf.stack([seed, number]), 0, tf.int64.max, tf.int64
        )
        # Batches of words have a similar width in all processes, by the same seed.
        files, places = (2 * process + 1, 2 * process + 2) if process else (0, 1)
        seeds = tf.gather(random, [files, places, 2])
        blocks = shard.blocks(shuffle_buffer, seeds, size)
        if not by_length:
            batches = blocks.rebatch(batching.batch_size)
        else:
            records, shuffle = blocks.unbatch(), bool(shuffle_buffer)
            batches = length_batches(records, batching, shuffle=shuffle, seed=seeds[2])
        return batches.concatenate(batching.empty().repeat(empty)) if empty else batches

    number, done = divmod(done, wanted)
    batches = tf.data.Dataset.range(number, tf.int64.max).flat_map(one_pass).skip(done)
    # Parsing after `flat_map` runs in parallel across passes. Batches of similar lengths are parsed
    # already, because they are sorted by their number of words.
    if parse and not by_length:
        batches = batches.map(batching.parse, num_parallel_calls=tf.data.AUTOTUNE)
    return without_autotune(batches.prefetch(tf.data.AUTOTUNE))


class Inputs:
    """The train and the eval split of a job, as datasets for its strategy.

    Every process creates batches for its own replicas from its own shard. Under parameter servers
    only the coordinator reads, and a single worker executes a step. The coordinator sends
    serialized Examples, which have a third of the bytes of parsed ones, and the workers parse them.
    Batches of words are parsed by the coordinator, because they are sorted by length.

    Args:
      job: the files and the settings.
      feature_names: the features that the model reads.
      strategy: the strategy, under which the datasets are distributed.
      collective: sums over the processes that train synchronously. All of these call this.

    Attributes:
      train, evaluation: the train and the eval split.
      batch_size: number of Examples in a batch of a replica: `training.batch_size_per_replica`, or
        all Examples of the replica if they are fewer.
      global_batch: number of Examples in a step, over all replicas.
      steps, eval_steps: number of steps in an epoch and in an evaluation.
      epochs: number of epochs: `training.epochs`, or more for `training.min_examples_seen`.

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
        self.train = Split.find(job.train_files, collective)
        self.evaluation = Split.find(job.eval_files, collective)
        for split, patterns in ((self.train, job.train_files), (self.evaluation, job.eval_files)):
            if not split.examples:
                raise ValueError(f"no Example in {', '.join(patterns)}: the split is empty")
        shards = self.train.shards(collective.processes)
        self._own_examples = shards[collective.process].examples
        largest = max(shard.examples for shard in shards)
        self.batch_size = min(
            training.batch_size_per_replica, math.ceil(largest / self._replicas_here)
        )
        self.global_batch = self.batch_size * strategy.num_replicas_in_sync
        if self.batch_size < training.batch_size_per_replica:
            logging.info(
                "training.batch_size_per_replica %d: a replica has only %d Examples in an epoch, "
                "and its batches have as many",
                training.batch_size_per_replica,
                self.batch_size,
            )
        self._batching = BatchSpec(
            feature_names, job.transform, self.batch_size, self._replicas_here, self.static_shapes
        )
        self.steps = self._steps(self.train)
        self.eval_steps = self._steps(self.evaluation)
        minimum = -(-(training.min_examples_seen or 0) // self.train.examples)
        self.epochs = max(training.epochs, minimum)

    def train_dataset(self, first_step: int) -> Any:
        """Return the train split, endless and shuffled.

        Args:
          first_step: the number of steps, over all epochs, that are skipped.

        Returns:
          A dataset, or a DistributedDataset with a batch for each replica of this process: (inputs,
          label, and with static shapes the weight), see `make_dataset`. Under parameter servers the
          batches are not parsed, see `parse_on_worker`.
        """
        shuffle_buffer = self._job.training.shuffle_buffer
        return self._distributed(self.train, self.steps, first_step, shuffle_buffer)

    def eval_dataset(self) -> Any:
        """Return the eval split, endless and in order, in the form of `train_dataset`."""
        return self._distributed(self.evaluation, self.eval_steps, 0, 0)

    def examples_of_step(self, step: int) -> int:
        """Return the number of Examples in a step on the first replica of this process.

        In an epoch only the last batch of a shard is short, and the batches after it are empty.

        Args:
          step: the number of the step, from 0 over all epochs.
        """
        batch_size = self._batching.batch_size
        before = (step % self.steps) * self._replicas_here * batch_size
        return min(max(self._own_examples - before, 0), batch_size)

    def parse_on_worker(self, batch: Any) -> Any:
        """Parse a batch from the coordinator on a worker; return it as in `make_dataset`."""
        # Batches of similar lengths were parsed before they were sorted.
        return batch if self._batching.by_length else self._batching.parse(batch)

    def class_counts(self, kind: str, labels: Labels) -> np.ndarray:
        """Return counts of the train split by class.

        If Transform has not stored the counts, each synchronous process counts a shard.

        Args:
          kind: LABELS or NGRAMS of `examples.counts`.
          labels: the classes.

        Returns:
          float64, [classes] for LABELS, [classes, rows] for NGRAMS, see `ngram_rows`.

        Raises:
          InputError: a file is damaged, or a label is the index of no class.
          tensorflow.errors.OpError: a file cannot be read, or another process is gone.
        """
        transform, names = self._batching.transform, [features.NGRAMS] if kind == NGRAMS else []
        rows = ngram_rows(transform.ngram_buckets, labels) if names else 0
        stored = read_class_counts(self._job.train_files, kind, labels.number, rows)
        # All processes count if one of them finds no counts.
        if not self._collective.any(stored is None) and stored is not None:
            return stored.astype(np.float64)
        logging.info("Reading the train split once before the first step")
        shards = self.train.shards(self._collective.processes)
        batching = BatchSpec(tuple(names), transform, _COUNTED_BATCH)
        counter = ClassCounter(labels.number, rows, transform.ngram_buckets)
        for inputs, label in make_dataset(shards[self._collective.process], batching):
            ngrams = None
            if names:
                rows_of_batch = inputs[features.NGRAMS]
                ngrams = NgramIds(rows_of_batch.values.numpy(), rows_of_batch.row_lengths().numpy())
            counter.add(tf.cast(label, tf.int64).numpy()[:, 0], ngrams)
        # Every reduction supports float64, which is exact up to 2^53.
        return self._collective.sum(tf.constant(counter.counts[kind], tf.float64)).numpy()

    def _steps(self, split: Split) -> int:
        largest = max(shard.examples for shard in split.shards(self._collective.processes))
        return math.ceil(self._batching.count(largest) / self._replicas_here)

    def _distributed(self, split: Split, steps: int, first_step: int, shuffle_buffer: int) -> Any:
        def shard_batches(process: int, processes: int) -> tf.data.Dataset:
            return endless(
                split.shards(processes)[process],
                self._batching,
                steps * self._replicas_here,
                shuffle_buffer=shuffle_buffer,
                seed=self._job.training.seed,
                done=first_step * self._replicas_here,
                parse=not self._by_coordinator,
                process=process,
            )

        if self._by_coordinator:
            return shard_batches(0, 1)
        return self._strategy.distribute_datasets_from_function(
            lambda context: shard_batches(context.input_pipeline_id, context.num_input_pipelines)
        )
