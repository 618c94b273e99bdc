"""deep_averaging: vectors of hashed n-grams, their scaled sum, a ReLU and a dense layer.

After Iyyer et al., "Deep Unordered Composition Rivals Syntactic Methods for Text Classification"
(2015), with the hashed n-grams of fastText (Joulin et al., "Bag of Tricks for Efficient Text
Classification", 2017). With some thousand texts it is better than one weight for each n-gram and
class; the laboratory journal has the measurements.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from core.settings import PositiveInt
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import MAX_WEIGHTS, Transform, ngram_rows
from trainer_module.models import bags, ngram_linear
from trainer_module.models.layers import DropoutRate


class Hyperparameters(bags.BagHyperparameters):
    """The vectors of the n-grams, their sum, and dropout."""

    width: PositiveInt = 256
    """Values in the vector of an n-gram."""
    ngram_dropout: DropoutRate = 0.3
    """Fraction of n-grams that a step of the training leaves out."""
    dropout: DropoutRate = 0.5
    """Dropout of the values after the ReLU."""


FEATURES = (features.NGRAMS,)
LEARNING_RATE = 0.12
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (0.03, 0.4, "log"),
    "width": [64, 128, 256, 512],
    "length_power": (0.0, 1.0, "linear"),
    "ngram_dropout": (0.0, 0.5, "linear"),
    "dropout": (0.0, 0.6, "linear"),
}


class VectorBag(bags.ClassBag):
    """The scaled sum of the vectors of a text's n-grams, and a bias; see `ClassBag`.

    The table has at most MAX_WEIGHTS values, so a wide one has fewer rows than n-grams are counted.

    Input: int64 ids as of `NgramBag`. Output: float32 [batch, width].

    Args:
      counted_rows: the number of n-grams that are counted, see `ngram_rows`.
      labels: the classes.
      hyperparameters: the vectors, their sum and its scale.
    """

    def __init__(self, counted_rows: int, labels: Labels, hyperparameters: Hyperparameters):
        rows = max(1, min(counted_rows, MAX_WEIGHTS // hyperparameters.width))
        super().__init__(rows, labels, hyperparameters)
        self.counted_rows = counted_rows
        self._width = hyperparameters.width
        self._rate = hyperparameters.ngram_dropout
        self._drop = tf_keras.layers.Dropout(self._rate, dtype="float32")

    @property
    def columns(self) -> int:
        return self._width

    @property
    def table_initializer(self) -> tf_keras.initializers.Initializer:
        # As in fastText. The vector of an n-gram that the training does not see stays as small.
        return tf_keras.initializers.RandomUniform(-1 / self._width, 1 / self._width)

    def call(self, inputs: tf.RaggedTensor | tf.Tensor, training: bool = False) -> tf.Tensor:
        factors = self.factors(inputs)
        if training and self._rate:
            inputs = self._without_some(inputs)
            factors /= 1 - self._rate
        return self.totals(inputs, training) * factors + self.bias

    def _without_some(self, inputs: tf.RaggedTensor | tf.Tensor) -> tf.RaggedTensor | tf.Tensor:
        """Return the ids without those that are dropped."""
        if not isinstance(inputs, tf.RaggedTensor):
            kept = self._drop(tf.ones_like(inputs, tf.float32), training=True) > 0
            return tf.where(kept, inputs, -1)
        kept = self._drop(tf.ones_like(inputs.flat_values, tf.float32), training=True) > 0
        return tf.ragged.boolean_mask(inputs, inputs.with_flat_values(kept))

    def _row_ids(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.cast(ids % self.counted_rows % self.rows, tf.int32)


def build(
    hyperparameters: Hyperparameters,
    transform: Transform,
    labels: Labels,
    *,
    static_shapes: bool = False,
) -> tf_keras.Model:
    """Build a model {ngrams: see `ngram_linear.ngram_ids`} -> logits, float32 [batch, logits]."""
    ngrams = ngram_linear.ngram_ids(static_shapes=static_shapes)
    rows = ngram_rows(transform.ngram_buckets, labels)
    x = VectorBag(rows, labels, hyperparameters)(ngrams)
    x = tf_keras.layers.ReLU(name="relu")(x)
    x = tf_keras.layers.Dropout(hyperparameters.dropout, name="dropout")(x)
    # With zeros the accuracy on 77 intents is 0.01 higher than with Keras's default.
    dense = tf_keras.layers.Dense(
        labels.logits, kernel_initializer="zeros", dtype=tf.float32, name="logit"
    )
    return tf_keras.Model({features.NGRAMS: ngrams}, dense(x), name="deep_averaging")


optimizer = ngram_linear.optimizer


def adapt(model: tf_keras.Model, counts: Any) -> None:
    """Compute the scale of the n-grams; see `bags.adapt`.

    Args:
      model: the model, which has a `VectorBag`.
      counts: the occurrences of each n-gram by class, [classes, counted rows].
    """
    bag = model.get_layer(bags.BAG)
    by_ngram = tf.transpose(tf.cast(counts, tf.float32))
    rows = tf.range(bag.counted_rows) % bag.rows
    folded = tf.math.unsorted_segment_sum(by_ngram, rows, bag.rows)
    bags.adapt(model, tf.transpose(folded))
