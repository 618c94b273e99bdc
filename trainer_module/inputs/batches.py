"""From serialized Examples to batches: parsing, padding, and reviews of similar length together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from preprocessing import features
from preprocessing.settings import Transform

NGRAM_PADDING = -1
"""The id that pads the rows of NGRAMS to static shapes; no n-gram has this id."""
_CHARACTER_NGRAMS = 8
"""N-grams of characters a word, of each length, for which static shapes have room."""
_BUCKET_STEP = 16
_WINDOW_EXAMPLES = 65_536
_MIN_BATCHES = 16
"""Minimum number of batches in a window; with large batches it exceeds _WINDOW_EXAMPLES."""


@dataclass(frozen=True)
class BatchSpec:
    """The parameters by which Examples become batches.

    Attributes:
      names: the names of the features that the model reads, see `preprocessing.features`.
      transform: the settings of the features.
      batch_size: Examples in a batch of a replica.
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

    @property
    def by_length(self) -> bool:
        """Whether the reviews of a batch have similar lengths."""
        return features.TOKENS in self.names and not self.static_shapes

    @property
    def window(self) -> int:
        """The number of batches that are sorted by length together, a multiple of `replicas`."""
        batches = max(_MIN_BATCHES, _WINDOW_EXAMPLES // self.batch_size)
        return -(-batches // self.replicas) * self.replicas

    def count(self, examples: int) -> int:
        """Return the number of batches for a number of Examples."""
        return math.ceil(examples / self.batch_size)

    def parse(self, serialized: tf.Tensor) -> tuple[Any, ...]:
        """Parse a batch into inputs, label and perhaps weight.

        Args:
          serialized: serialized Examples, string [batch].

        Returns:
          Inputs, label and weight as in `make_dataset`, except that TOKENS is ragged too. With
          static shapes there is a weight, and all inputs are padded.
        """
        spec = {
            name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64) for name in self.names
        }
        spec[features.LABEL] = tf.io.FixedLenFeature([1], tf.int64)
        inputs = tf.io.parse_example(serialized, spec)
        label = tf.cast(inputs.pop(features.LABEL), tf.float32)
        if not self.static_shapes:
            return inputs, label
        examples = tf.shape(label)[0]
        label = tf.pad(label, [[0, self.batch_size - examples], [0, 0]])
        label = tf.ensure_shape(label, [self.batch_size, 1])
        weight = tf.cast(tf.range(self.batch_size) < examples, tf.float32)
        return {name: self._padded(name, ids) for name, ids in inputs.items()}, label, weight

    def empty(self) -> tf.data.Dataset:
        """Return a dataset of one batch without Examples, parsed if the batches are `by_length`."""
        nothing: Any = tf.zeros([0], tf.string)
        if self.by_length:
            inputs, label = self.parse(nothing)
            tokens = inputs[features.TOKENS].to_tensor(shape=[None, 1])
            nothing = {**inputs, features.TOKENS: tokens}, label
        return tf.data.Dataset.from_tensors(nothing)

    def _padded(self, name: str, ids: tf.RaggedTensor) -> tf.Tensor:
        """Pad ids to [batch_size, width]; width is the number of ids of `max_tokens` words."""
        width, padding = self.transform.max_tokens, features.PADDING_TOKEN
        if name == features.NGRAMS:
            characters = width * _CHARACTER_NGRAMS * len(self.transform.character_ngrams)
            width = (width + sum(self.transform.openings)) * self.transform.ngrams + characters
            padding = NGRAM_PADDING
        return ids.to_tensor(padding, shape=[self.batch_size, width])


def length_boundaries(max_tokens: int) -> list[int]:
    """Return the widths to which batches are padded: multiples of 16, and `max_tokens`.

    A graph with a dynamic width is traced once, whatever the number of widths. Amazon reviews have
    133 words on average and come in batches of mean width 144. With steps of 32 the mean would be
    152; with steps of 1 it would be 137, but hardware is slow at such widths.
    """
    return [*range(_BUCKET_STEP, max_tokens, _BUCKET_STEP), max_tokens]


# The number of batches of `Dataset.bucket_by_sequence_length` depends on the lengths. For 12
# reviews, half of them long, it returns 4 batches of 4 or 2 reviews, not 3 batches of 4. So
# processes with the same number of reviews would take different numbers of steps.
def length_batches(
    records: tf.data.Dataset, batching: BatchSpec, *, shuffle: bool, seed: int | tf.Tensor
) -> tf.data.Dataset:
    """Return batches of (inputs, label), as `make_dataset` does, with reviews of similar length.

    The records of each window are sorted by length bucket, cut into batches and padded to the
    smallest boundary that is wide enough. Longer reviews are truncated. Only the very last batch
    can be smaller than the others.

    With `shuffle`, the records within a length bucket and the steps within a window are shuffled. A
    step has a batch for every replica, and records never change their window. The order of the
    batches depends only on the seed. So processes with the same seed have batches of similar width
    at the same step, and no process waits for another.

    Args:
      records: serialized tf.Examples, string [].
      batching: the form of the batches.
      shuffle: whether the records and the steps are shuffled.
      seed: an int or an int64 []. It has no effect without `shuffle`.
    """
    batch_size, group = batching.batch_size, batching.replicas
    widths = tf.constant(length_boundaries(batching.transform.max_tokens), tf.int64)

    def batches(
        parsed: tuple[dict[str, tf.RaggedTensor], tf.Tensor], random: tf.Tensor
    ) -> tf.data.Dataset:
        inputs, labels = parsed
        examples = tf.size(labels, tf.int64)
        last_width = tf.size(widths, tf.int64) - 1
        bucket = tf.minimum(
            tf.searchsorted(widths, inputs[features.TOKENS].row_lengths(), out_type=tf.int64),
            last_width,
        )
        sort_key = tf.cast(bucket, tf.float32)
        order = tf.range(-(-examples // batch_size))
        if shuffle:
            sort_key += tf.random.stateless_uniform([examples], [random, 0])
            order = _shuffled(order, examples // (batch_size * group), group, [random, 1])
        by_length = tf.argsort(sort_key, stable=True)
        inputs = {name: tf.gather(values, by_length) for name, values in inputs.items()}
        labels, bucket = tf.gather(labels, by_length), tf.gather(bucket, by_length)

        def batch(index: tf.Tensor) -> tuple[dict[str, Any], tf.Tensor]:
            start = index * batch_size
            end = tf.minimum(start + batch_size, examples)
            shape = tf.stack([end - start, widths[bucket[end - 1]]])
            chosen = {name: values[start:end] for name, values in inputs.items()}
            tokens = chosen[features.TOKENS].to_tensor(features.PADDING_TOKEN, shape=shape)
            return {**chosen, features.TOKENS: tokens}, labels[start:end]

        return tf.data.Dataset.from_tensor_slices(order).map(batch)

    # The next window is read and parsed during the training on the batches of this one.
    windows = records.batch(batch_size * batching.window).map(batching.parse).prefetch(1)
    randoms = tf.data.Dataset.random(seed, rerandomize_each_iteration=True)
    zipped = tf.data.Dataset.zip((windows, randoms))
    return zipped.flat_map(batches).prefetch(tf.data.AUTOTUNE)


def _shuffled(order: tf.Tensor, groups: tf.Tensor, group: int, seed: Any) -> tf.Tensor:
    """Return `order` with its first `groups` runs of `group` elements shuffled.

    The remaining elements keep their positions. One of them may be the smaller last batch.
    """
    runs = tf.reshape(order[: groups * group], [groups, group])
    mixed = tf.gather(runs, tf.argsort(tf.random.stateless_uniform([groups], seed)))
    return tf.concat([tf.reshape(mixed, [-1]), order[groups * group :]], axis=0)
