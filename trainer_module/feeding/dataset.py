"""Batches from transformed TFRecords, as a stream: memory does not grow with the data.

A split is divided into one `Share` for each process that reads it. The shares cover the split and
do not overlap. Every process reads the same number of batches, so none waits for another.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from core.files import list_files
from preprocessing import features
from preprocessing.settings import Transform
from trainer_module.cluster.collective import Collective
from trainer_module.feeding.autotune import without_autotune
from trainer_module.feeding.counts import count_examples
from trainer_module.feeding.length_batches import length_batches, window_batches
from trainer_module.feeding.reading import Reader, Share

NGRAM_PADDING = -1
"""The id that pads the rows of NGRAMS to static shapes; no n-gram has this id."""
_LARGEST_FAIR_SHARE = 1.1
"""The largest share of whole files, as a multiple of the mean, that counts as fair."""


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

    def shares(self, processes: int) -> list[Share]:
        """Return a share for each process: whole files if that is fair, else parts of each file."""
        by_file: list[list[int]] = [[] for _ in range(processes)]
        loads = [0] * processes
        for count, place in sorted(zip(self.counts, range(len(self.counts)), strict=True))[::-1]:
            least = loads.index(min(loads))
            by_file[least].append(place)
            loads[least] += count
        if max(loads) * processes <= _LARGEST_FAIR_SHARE * self.examples:
            chosen = [sorted(places) for places in by_file]
            return [
                Share(
                    tuple(self.files[place] for place in places),
                    tuple(self.counts[place] for place in places),
                )
                for places in chosen
            ]
        return [
            Share(
                self.files,
                tuple(len(range(index, count, processes)) for count in self.counts),
                index,
                processes,
            )
            for index in range(processes)
        ]


@dataclass(frozen=True)
class Batching:
    """The parameters by which Examples become batches.

    Attributes:
      names: the model's features, of `preprocessing.features`.
      transform: the settings of the features.
      batch_size: Examples a batch.
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
        ragged = {
            name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in self.names
        }
        return {features.LABEL: tf.io.FixedLenFeature([1], tf.int64), **ragged}

    @property
    def by_length(self) -> bool:
        """Whether the reviews of a batch have similar lengths."""
        return features.TOKENS in self.names and not self.static_shapes

    @property
    def window(self) -> int:
        """The number of batches that are sorted by length together."""
        return window_batches(self.batch_size, self.replicas)

    def batches(self, examples: int) -> int:
        """Return the number of batches of `examples` Examples."""
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

    def parse_on_worker(self, batch: Any) -> Any:
        """Parse a batch of `endless` that is not parsed yet."""
        # Batches of similar lengths are sorted by their parsed words.
        return batch if self.by_length else self.parse(batch)


def make_dataset(share: Share, batching: Batching) -> tf.data.Dataset:
    """Return one pass over `share` in order, in batches.

    A batch is (inputs, label), or with static shapes (inputs, label, weight). inputs is
    {name: values}, NGRAMS ragged int64 [batch, (n-grams)], TOKENS int64 [batch, width] padded with
    0; label float32 [batch, 1]; weight float32 [batch].
    """
    passes = _Passes(share, batching, Reader(share, 0, 0, False), batching.batches(share.examples))
    return without_autotune(passes.parsed(passes.whole(0)))


def endless(
    share: Share,
    batching: Batching,
    wanted: int,
    *,
    shuffle_buffer: int = 0,
    seed: int = 0,
    cache: bool = False,
    done: int = 0,
    parse: bool = True,
) -> tf.data.Dataset:
    """Return endless passes over `share`, each padded with empty batches to `wanted` batches.

    Args:
      share, batching: see `make_dataset`.
      wanted: number of batches of a pass; at least the number of batches of the share.
      shuffle_buffer, seed, cache: see `Reader`.
      done: batches to skip at the beginning, for a resumed training. Skipped Examples are not
        parsed, and files that contain only skipped Examples are not opened.
      parse: whether the batches are parsed. If not, `parse_on_worker` parses them.
    """
    passes = _Passes(share, batching, Reader(share, shuffle_buffer, seed, cache), wanted)
    number, done = divmod(done, wanted)
    later = tf.data.Dataset.range(number + bool(done), tf.int64.max).flat_map(passes.whole)
    if done:
        later = passes.rest(number, done).concatenate(later)
    return without_autotune((passes.parsed(later) if parse else later).prefetch(tf.data.AUTOTUNE))


class _Passes:
    """Passes over a share in unparsed batches, each padded to `wanted` batches.

    `parsed` parses the batches of all passes together, and therefore in parallel across passes.
    """

    def __init__(self, share: Share, batching: Batching, reader: Reader, wanted: int):
        self._batching = batching
        self._reader = reader
        self._batches = batching.batches(share.examples)
        self._empty = wanted - self._batches

    def whole(self, number: Any) -> tf.data.Dataset:
        """Return pass `number`, a scalar int64 tensor or an int."""
        return self._filled(self._batched(self._reader.whole(number), number), self._empty)

    def rest(self, number: int, done: int) -> tf.data.Dataset:
        """Return pass `number` without its first `done` batches."""
        batching, real = self._batching, min(done, self._batches)
        windows = real // batching.window if batching.by_length else 0
        before = windows * batching.window if batching.by_length else real
        blocks = self._reader.rest(number, before * batching.batch_size)
        batches = self._batched(blocks, number, windows).skip(real - before)
        return self._filled(batches, self._empty - (done - real))

    def parsed(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Parse the batches into the tensors that `make_dataset` describes."""
        if self._batching.by_length:
            return batches
        return batches.map(
            self._batching.parse,
            num_parallel_calls=tf.data.AUTOTUNE,
        )

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

    @staticmethod
    def _filled(batches: tf.data.Dataset, empty: int) -> tf.data.Dataset:
        if not empty:
            return batches
        nothing = tf.data.Dataset.from_tensors(_empty_batch(batches.element_spec))
        return batches.concatenate(nothing.repeat(empty))


def _padded(name: str, ids: tf.RaggedTensor, batching: Batching) -> tf.Tensor:
    """Pad ids to [batch_size, width], where width is that of a review of `max_tokens` words."""
    transform = batching.transform
    if name == features.NGRAMS:
        words = transform.max_tokens + sum(transform.openings)
        width, filler = words * transform.ngrams, NGRAM_PADDING
    else:
        width, filler = transform.max_tokens, 0
    return ids.to_tensor(filler, shape=[batching.batch_size, width])


def _empty_batch(element_spec: Any) -> Any:
    def empty(spec: Any) -> Any:
        if isinstance(spec, tf.RaggedTensorSpec):
            return tf.RaggedTensor.from_row_lengths(
                tf.zeros([0], spec.dtype), tf.zeros([0], spec.row_splits_dtype)
            )
        first, *others = spec.shape
        return tf.zeros([first or 0, *(size or 1 for size in others)], spec.dtype)

    return tf.nest.map_structure(empty, element_spec)
