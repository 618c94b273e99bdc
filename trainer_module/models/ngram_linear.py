"""ngram_linear: one embedding per hashed n-gram, averaged, and a logistic output (as fastText)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from preprocessing import features

FEATURES = (features.NGRAMS,)


class EmbeddingBag(tf_keras.layers.Layer):
    """Sum of the embeddings of a review's n-grams over the square root of their number.

    Input: int64 ids, RaggedTensor [batch, (n-grams)]. Output: float32 [batch, dim].
    """

    def __init__(self, buckets: int, dim: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._buckets = buckets
        self._dim = dim

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight(
            name="table",
            shape=(self._buckets, self._dim),
            initializer=tf_keras.initializers.RandomUniform(-0.01, 0.01),
        )

    def call(self, inputs: tf.RaggedTensor) -> tf.Tensor:
        vectors = tf.gather(self.table, inputs.flat_values)
        rows = tf.cast(inputs.nrows(), tf.int64)
        total = tf.math.unsorted_segment_sum(vectors, inputs.value_rowids(), rows)
        count = tf.maximum(tf.cast(inputs.row_lengths(), tf.float32), 1.0)
        return total * tf.math.rsqrt(count)[:, tf.newaxis]


def build(training: Mapping[str, Any], transform: Mapping[str, Any]) -> tf_keras.Model:
    """A model {ngrams: int64 [batch, (n-grams)]} -> probability of positive, float32 [batch, 1]."""
    ngrams = tf_keras.Input([None], dtype=tf.int64, ragged=True, name=features.NGRAMS)
    bag = EmbeddingBag(transform["ngram_buckets"], training["embedding_dim"], name="bag")(ngrams)
    output = tf_keras.layers.Dense(1, activation="sigmoid", name="probability")(bag)
    return tf_keras.Model({features.NGRAMS: ngrams}, output, name="ngram_linear")


def optimizer(learning_rate: Any) -> tf_keras.optimizers.Optimizer:
    """Adagrad: touches only the table rows of a batch, and rare n-grams keep a high rate."""
    return tf_keras.optimizers.Adagrad(learning_rate, initial_accumulator_value=0.1)
