"""Batches of reviews of similar length, so that they contain little padding."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from preprocessing import features

_BUCKET_STEP = 16
_WINDOW_EXAMPLES = 65_536
_MIN_BATCHES = 16
"""Minimum number of batches in a window; with large batches it exceeds _WINDOW_EXAMPLES."""


def length_boundaries(max_tokens: int) -> list[int]:
    """Return the widths to which batches are padded: multiples of 16, and `max_tokens`.

    A graph with a dynamic width is traced once, whatever the number of widths. Amazon reviews have
    133 words on average and come in batches of mean width 144. With steps of 32 the mean would be
    152; with steps of 1 it would be 137, but hardware is slow at such widths.
    """
    return [*range(_BUCKET_STEP, max_tokens, _BUCKET_STEP), max_tokens]


def window_batches(batch_size: int, group: int) -> int:
    """Return the number of batches that are sorted by length together.

    They are whole groups of batches with about 65,536 examples, and at least 16 batches.
    """
    window = max(_MIN_BATCHES, _WINDOW_EXAMPLES // batch_size)
    return -(-window // group) * group


def length_batches(
    records: tf.data.Dataset,
    spec: dict[str, Any],
    batch_size: int,
    max_tokens: int,
    *,
    shuffle: bool = False,
    seed: int | tf.Tensor = 0,
    group: int = 1,
    window: int,
    first_window: int = 0,
) -> tf.data.Dataset:
    """Return batches of (inputs, label), as `make_dataset` does, with reviews of similar length.

    The records of each window of `window` batches are sorted by length bucket, cut into batches and
    padded to the smallest boundary that is wide enough. Only the very last batch can be smaller
    than the others.

    With `shuffle`, the records of a length bucket are shuffled, and so are the batches of a window;
    records never change their window. The order of the batches depends only on the seed: at the
    same step, processes with the same seed have batches of similar width, and none waits for
    another. Another pass over the dataset (a new iterator or `repeat`) has another order.

    Args:
      records: serialized tf.Examples, scalar strings.
      spec: tf.io parsing spec with LABEL, shape [1], and RaggedFeatures, one of them TOKENS.
      max_tokens: maximum length of a review in tokens; longer reviews are cut.
      group: number of consecutive batches with similar length, one for each replica of a step.
      window: batches that are in memory and sorted together, see `window_batches`.
      first_window: number of windows of the pass that precede `records`.
    """
    widths = tf.constant(length_boundaries(max_tokens), tf.int64)

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
        place = tf.cast(bucket, tf.float32)
        order = tf.range(-(-examples // batch_size))
        if shuffle:
            place += tf.random.stateless_uniform([examples], [random, 0])
            order = _shuffled(order, examples // (batch_size * group), group, [random, 1])
        by_length = tf.argsort(place, stable=True)
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

    def parse(serialized: tf.Tensor) -> tuple[dict[str, tf.RaggedTensor], tf.Tensor]:
        inputs = tf.io.parse_example(serialized, spec)
        return inputs, tf.cast(inputs.pop(features.LABEL), tf.float32)

    # The next window is read and parsed during the training on the batches of this one.
    windows = records.batch(batch_size * window).map(parse).prefetch(1)
    randoms = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).skip(first_window)
    zipped = tf.data.Dataset.zip((windows, randoms))
    return zipped.flat_map(batches).prefetch(tf.data.AUTOTUNE)


def _shuffled(order: tf.Tensor, groups: tf.Tensor, group: int, seed: Any) -> tf.Tensor:
    """Return `order` with its first `groups` runs of `group` elements shuffled.

    The remaining elements keep their place. One of them may be the smaller last batch of the data.
    """
    runs = tf.reshape(order[: groups * group], [groups, group])
    mixed = tf.gather(runs, tf.argsort(tf.random.stateless_uniform([groups], seed)))
    return tf.concat([tf.reshape(mixed, [-1]), order[groups * group :]], axis=0)
