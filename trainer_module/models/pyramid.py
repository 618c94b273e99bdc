"""A pyramid of convolutions over the words of a review, and the maxima at its bottom and its top.

After Johnson and Zhang, "Deep Pyramid Convolutional Neural Networks for Text Categorization"
(2017).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from preprocessing import features

_KERNEL = 3
_POOL = 2
_OPENING = 10
"""Words at the beginning of a review, usually its title, that have maxima of their own."""
_SHARE_OF_CHANGE = 0.5
"""Factor of the change that a block adds, so that the values grow little from block to block."""


class Pyramid(tf_keras.layers.Layer):
    """A convolution, blocks of two residual convolutions, and maxima.

    Every block but the first begins with a maximum over each two steps, which shortens the review
    by half. So all blocks together take less than twice the time of the first one, and a step of
    the last block covers several words.

    Steps after the end of a review are zeros in every layer, and the width is padded to a multiple
    of the words of a step of the last block. So the output does not depend on the width.

    Input: int64 [batch, width], padding 0. Output: [batch, 2 * filters], not negative: the maxima
    of the first convolution over the opening, and those of the last block over the review.
    """

    def __init__(
        self,
        words: tf_keras.layers.Layer,
        *,
        filters: int,
        blocks: int,
        word_dropout: float,
        **kwargs: Any,
    ):
        """Create the layer.

        Args:
          words: the embedding, int64 [batch, width] -> [batch, width, embedding_width].
          filters: filters of each convolution.
          blocks: number of blocks.
          word_dropout: fraction of words that are zeros in a training.
          kwargs: the arguments of every Keras layer.
        """
        super().__init__(**kwargs)
        self._words = words
        self._drop_words = tf_keras.layers.Dropout(word_dropout, noise_shape=(None, None, 1))
        self._first = _convolution(filters, "first")
        self._blocks = [
            [_convolution(filters, f"block_{number}_{half}") for half in "ab"]
            for number in range(1, blocks + 1)
        ]
        self._multiple = _POOL ** (blocks - 1)

    def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        padded = _padded(tokens, self._multiple)
        vectors = self._drop_words(self._words(padded), training=training)
        real = tf.cast(tf.not_equal(padded, features.PADDING_TOKEN), vectors.dtype)[:, :, None]
        x = self._first(vectors * real) * real
        bottom = tf.reduce_max(x[:, :_OPENING], axis=1)
        for number, (one, other) in enumerate(self._blocks):
            if number:
                x, real = (tf.nn.max_pool1d(values, _POOL, _POOL, "VALID") for values in (x, real))
            change = one(tf.nn.relu(x)) * real
            change = other(tf.nn.relu(change)) * real
            x += _SHARE_OF_CHANGE * change
        maxima = tf.nn.relu(tf.concat([bottom, tf.reduce_max(x, axis=1)], axis=1))
        return maxima[: tf.shape(tokens)[0]]


def _convolution(filters: int, name: str) -> tf_keras.layers.Layer:
    return tf_keras.layers.Conv1D(filters, _KERNEL, padding="same", name=name)


def _padded(tokens: tf.Tensor, multiple: int) -> tf.Tensor:
    """Pad to a width that is a multiple of `multiple` and not 0, and an empty batch to one row.

    The convolution and the maximum of oneDNN do not support an empty batch.
    """
    missing = [
        _missing(dynamic if static is None else static, factor)
        for static, dynamic, factor in zip(
            tokens.shape, tf.unstack(tf.shape(tokens)), (1, multiple), strict=True
        )
    ]
    return tf.pad(tokens, [[0, size] for size in missing], constant_values=features.PADDING_TOKEN)


def _missing(size: Any, multiple: int) -> Any:
    """Return what `size`, an int or a tensor, lacks to be a multiple that is not 0."""
    larger = -(-size // multiple) * multiple
    wanted = max(larger, multiple) if isinstance(size, int) else tf.maximum(larger, multiple)
    return wanted - size
