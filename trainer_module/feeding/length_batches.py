"""Reviews of about the same length in one batch, so that little of it is padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from preprocessing import features

_BUCKET_STEP = 16
_WINDOW_EXAMPLES = 65_536
_FEWEST_BATCHES = 16
"""Batches in a window, even if they are so large that a window gets more examples."""


def length_boundaries(max_tokens: int) -> list[int]:
    """The widths that batches are padded to: the multiples of 16 below `max_tokens`, and itself.

    A graph with a dynamic width is traced once, however many widths there are. Amazon reviews of
    133 words on average come in batches 144 wide; with steps of 32 they would be 152 wide, with
    no steps at all 137 wide, but of widths that hardware does not like.
    """
    return [*range(_BUCKET_STEP, max_tokens, _BUCKET_STEP), max_tokens]


def window_batches(batch_size: int, group: int) -> int:
    """How many batches are sorted by length together: 65,536 examples, 16 batches at least, in
    whole groups."""
    window = max(_FEWEST_BATCHES, _WINDOW_EXAMPLES // batch_size)
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
    boundaries: Sequence[int] | None = None,
    window: int | None = None,
    first_window: int = 0,
) -> tf.data.Dataset:
    """Batches of ({TOKENS: int64 [batch, width]}, float32 label [batch, 1]), padded with 0.

    Each `window` batches of records are ordered by length bucket, cut into batches and padded to
    the smallest boundary that holds the batch. Every record comes once, in ceil(N / batch_size)
    batches, of which only the last one of all can be smaller than the others.

    With `shuffle`, records of one length bucket are mixed, and so are the batches of a window;
    the records themselves should come shuffled, for which of them share a window is not changed.
    The order of the batches depends on the seed alone: processes with the same seed get about the
    same width at the same step, and none of them waits for a longer batch of another. Another
    pass over the dataset (a new iterator or `repeat`) has another order. Without `shuffle` a
    window starts with its shortest records.

    Args:
      records: serialized tf.Examples, scalar strings.
      spec: tf.io parsing spec with TOKENS (a RaggedFeature) and LABEL, shape [1].
      batch_size: examples per batch.
      max_tokens: longest review, in tokens; what is longer is cut.
      shuffle: see above.
      seed: of the shuffling.
      group: this many batches that follow each other have about the same length, for as many
        replicas that train on them in one step.
      boundaries: ascending widths, of which the last is the longest that a review can be; None:
        `length_boundaries`.
      window: batches that are held in memory and sorted together, rounded up to whole groups;
        None: `window_batches`.
      first_window: how many windows were there before `records`, of a pass whose rest they are.
    """
    widths = tf.constant(boundaries or length_boundaries(max_tokens), tf.int64)
    window = -(-window // group) * group if window else window_batches(batch_size, group)

    def batches(parsed: tuple[tf.RaggedTensor, tf.Tensor], random: tf.Tensor) -> tf.data.Dataset:
        tokens, labels = parsed
        examples = tf.size(labels, tf.int64)
        last_width = tf.size(widths, tf.int64) - 1
        bucket = tf.minimum(
            tf.searchsorted(widths, tokens.row_lengths(), out_type=tf.int64), last_width
        )
        place = tf.cast(bucket, tf.float32)
        order = tf.range(-(-examples // batch_size))
        if shuffle:
            place += tf.random.stateless_uniform([examples], [random, 0])
            order = _shuffled(order, examples // (batch_size * group), group, [random, 1])
        by_length = tf.argsort(place, stable=True)
        tokens, labels, bucket = (
            tf.gather(values, by_length) for values in (tokens, labels, bucket)
        )

        def batch(index: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
            start = index * batch_size
            end = tf.minimum(start + batch_size, examples)
            shape = tf.stack([end - start, widths[bucket[end - 1]]])
            dense = tokens[start:end].to_tensor(features.PADDING_TOKEN, shape=shape)
            return {features.TOKENS: dense}, labels[start:end]

        return tf.data.Dataset.from_tensor_slices(order).map(batch)

    def parse(serialized: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        parsed = tf.io.parse_example(serialized, spec)
        return parsed[features.TOKENS], tf.cast(parsed[features.LABEL], tf.float32)

    # The next window is read and parsed while the batches of this one are trained on.
    windows = records.batch(batch_size * window).map(parse).prefetch(1)
    randoms = tf.data.Dataset.random(seed, rerandomize_each_iteration=True).skip(first_window)
    zipped = tf.data.Dataset.zip((windows, randoms))
    return zipped.flat_map(batches).prefetch(tf.data.AUTOTUNE)


def _shuffled(order: tf.Tensor, groups: tf.Tensor, group: int, seed: Any) -> tf.Tensor:
    """`order` with its first `groups` runs of `group` elements shuffled; the rest stays behind.

    In what stays behind is the smaller batch at the end of the data.
    """
    runs = tf.reshape(order[: groups * group], [groups, group])
    mixed = tf.gather(runs, tf.argsort(tf.random.stateless_uniform([groups], seed)))
    return tf.concat([tf.reshape(mixed, [-1]), order[groups * group :]], axis=0)
