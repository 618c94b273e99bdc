"""wide_and_deep: a bag of n-grams and pyramids of convolutions, whose logits are averaged.

The bag is wide and each pyramid is deep, as in Cheng et al., "Wide & Deep Learning for Recommender
Systems" (2016). The pyramid is after Johnson and Zhang, "Deep Pyramid Convolutional Neural Networks
for Text Categorization" (2017).

Each part is trained on the loss of its own logit, and not on that of the sum as in Cheng et al. The
bag learns much faster than a pyramid, and the loss of the sum would have a small gradient for every
review that the bag already classifies. All parts share one optimizer, because every strategy
supports that; the bag is as good under Adam as under Adagrad, to about 0.001.
"""

from __future__ import annotations

from typing import Annotated, Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from core.settings import PositiveInt
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform
from trainer_module.models import bags, ngram_linear
from trainer_module.models.layers import DropoutRate, Padding, adam, embedding, logits, word_ids

_KERNEL = 3
_POOL = 2
_OPENING = 10
"""Words at the beginning of a review, usually its title, that have maxima of their own."""
_SHARE_OF_CHANGE = 0.5
"""Factor of the change that a block adds. It limits the growth of the values over the blocks."""


class Hyperparameters(bags.BagHyperparameters):
    """The hyperparameters of the bag and of the pyramids, with defaults for a CPU."""

    pyramids: PositiveInt = 1
    """Number of pyramids, which differ only in their first weights."""
    embedding_width: PositiveInt = 128
    filters: PositiveInt = 96
    """Filters of each convolution."""
    blocks: Annotated[int, Field(ge=1, le=8)] = 3
    """Blocks of two convolutions; between two blocks the review is shortened by half. With 8 blocks
    a step of the last one has 128 words, to a multiple of which every review is padded."""
    word_dropout: DropoutRate = 0.1
    """Fraction of words that a step of the training leaves out."""
    dropout: DropoutRate = 0.3
    """Dropout of the maxima."""


FEATURES = (features.NGRAMS, features.TOKENS)
LEARNING_RATE = 4e-3
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (1e-3, 1e-2, "log"),
    "filters": [64, 96, 128],
    "blocks": [2, 3, 4],
    "word_dropout": (0.0, 0.3, "linear"),
    "dropout": (0.0, 0.5, "linear"),
}


class Pyramid(tf_keras.layers.Layer):
    """A convolution, blocks of two residual convolutions, and maxima.

    Every block but the first begins with a maximum over each two steps, so all blocks together take
    less than twice the time of the first one. Steps after the end of a review are zeros in every
    layer, and the width is padded to a multiple of the words of a step of the last block. So the
    output does not depend on the width.

    Input: int64 [batch, width], padding 0. Output: [max(batch, 1), 2 * filters], not negative: the
    maxima of the first convolution over the opening, and those of the last block over the review.
    """

    def __init__(self, transform: Transform, hyperparameters: Hyperparameters, **kwargs: Any):
        super().__init__(**kwargs)
        filters, blocks = hyperparameters.filters, hyperparameters.blocks
        self._words = embedding(transform, hyperparameters.embedding_width)
        self._drop_words = tf_keras.layers.Dropout(
            hyperparameters.word_dropout, noise_shape=(None, None, 1)
        )
        self._first = _convolution(filters, "first")
        self._blocks = [
            [_convolution(filters, f"block_{number}_{half}") for half in "ab"]
            for number in range(1, blocks + 1)
        ]
        self._pad = Padding(multiple=_POOL ** (blocks - 1))

    def call(self, tokens: tf.Tensor, training: bool = False) -> tf.Tensor:
        padded = self._pad(tokens)
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
        return tf.nn.relu(tf.concat([bottom, tf.reduce_max(x, axis=1)], axis=1))


class MeanOfParts(tf_keras.layers.Layer):
    """A layer that returns the mean of the logits of all parts; in a training, each logit.

    Inputs: a list of float32 [batch, logits]. Output: float32 [batch, logits]; in a training
    [batch, parts, logits].
    """

    def call(self, inputs: list[tf.Tensor], training: bool = False) -> tf.Tensor:
        logits = tf.stack(inputs, axis=1)
        return logits if training else tf.reduce_mean(logits, axis=1)


def build(
    hyperparameters: Hyperparameters,
    transform: Transform,
    labels: Labels,
    *,
    static_shapes: bool = False,
) -> tf_keras.Model:
    """Build a model {ngrams: see `ngram_ids`, tokens: int64 [batch, width], padding 0} -> logits.

    In a training each part has logits of its own, [batch, 1 + pyramids, logits]; see `models`.
    """
    ngrams = ngram_linear.ngram_ids(static_shapes=static_shapes)
    tokens = word_ids(transform, static_shapes=static_shapes)
    bag = bags.make_bag(transform, labels, hyperparameters)
    parts = [bag(ngrams)]
    for number in range(1, hyperparameters.pyramids + 1):
        pyramid = Pyramid(transform, hyperparameters, name=f"pyramid_{number}")
        x = tf_keras.layers.Dropout(hyperparameters.dropout)(pyramid(tokens))
        parts.append(logits(x, tokens, labels, name=f"logit_{number}"))
    output = MeanOfParts(name="mean", dtype="float32")(parts)
    return tf_keras.Model(
        {features.NGRAMS: ngrams, features.TOKENS: tokens}, output, name="wide_and_deep"
    )


def _convolution(filters: int, name: str) -> tf_keras.layers.Layer:
    return tf_keras.layers.Conv1D(filters, _KERNEL, padding="same", name=name)


optimizer = adam
adapt = bags.adapt
