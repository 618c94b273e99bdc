"""ngram_linear: one weight per hashed n-gram, summed over a review, and a logistic output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from preprocessing import features

FEATURES = (features.NGRAMS,)

_SMOOTHING = 1.0
_SCALE_FLOOR = 0.3
_FIRST_ACCUMULATOR = 1e-6
_AT_BATCH = 1024


class NgramBag(tf_keras.layers.Layer):
    """An embedding bag of width 1: the sum of the weights of a review's n-grams, and a bias.

    Each weight is the product of a learned number and a fixed scale that `adapt` computes: how
    much more often the n-gram's bucket occurs in one class than in the other, as the log-count
    ratio of Wang and Manning, "Baselines and Bigrams" (2012). Under Adagrad the scale acts as a
    learning rate of the bucket's own: n-grams that tell the classes apart learn first.

    Input: int64 ids in [0, buckets), RaggedTensor [batch, (n-grams)]. Output: float32 [batch, 1].
    """

    def __init__(self, buckets: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._buckets = buckets

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight(name="table", shape=(self._buckets,), initializer="zeros")
        self.bias = self.add_weight(name="bias", shape=(1,), initializer="zeros")
        self.scale = self.add_weight(
            name="scale", shape=(self._buckets,), initializer="ones", trainable=False
        )

    def call(self, inputs: tf.RaggedTensor) -> tf.Tensor:
        # Read from the product and not from the table: the gradient is then one dense tensor,
        # which is faster to make and to apply than a million unsorted slices are to merge.
        weights = tf.gather(self.table * self.scale, inputs.flat_values)
        total = tf.math.unsorted_segment_sum(weights, inputs.value_rowids(), inputs.nrows())
        return total[:, tf.newaxis] + self.bias

    def adapt(self, dataset: tf.data.Dataset) -> None:
        """Computes the scale in one pass over batches of ({ngrams: ids}, label [batch, 1])."""
        counts = tf.Variable(tf.zeros([2 * self._buckets]), trainable=False)

        @tf.function(autograph=False, reduce_retracing=True)
        def count(ids: tf.RaggedTensor, labels: tf.Tensor) -> None:
            classes = tf.gather(tf.cast(labels[:, 0], tf.int64), ids.value_rowids())
            places = ids.flat_values + self._buckets * classes
            ones = tf.ones_like(places, tf.float32)
            counts.assign_add(tf.math.unsorted_segment_sum(ones, places, 2 * self._buckets))

        for inputs, labels in dataset:
            count(inputs[features.NGRAMS], labels)
        by_class = tf.reshape(counts, [2, self._buckets])
        occurrences = tf.reduce_sum(by_class, axis=0)
        smoothed = by_class + _SMOOTHING
        logs = tf.math.log(smoothed / tf.reduce_sum(smoothed, axis=1, keepdims=True))
        scale = _SCALE_FLOOR + tf.abs(logs[1] - logs[0])
        # On average over all n-grams that are read the scale is 1.
        mean = tf.reduce_sum(scale * occurrences) / tf.reduce_sum(occurrences)
        self.scale.assign(scale / mean)


def build(training: Mapping[str, Any], transform: Mapping[str, Any]) -> tf_keras.Model:
    """A model {ngrams: int64 [batch, (n-grams)]} -> logit of positive, float32 [batch, 1]."""
    ngrams = tf_keras.Input([None], dtype=tf.int64, ragged=True, name=features.NGRAMS)
    logit = NgramBag(transform["ngram_buckets"], name="bag")(ngrams)
    return tf_keras.Model({features.NGRAMS: ngrams}, logit, name="ngram_linear")


def adapt(model: tf_keras.Model, dataset: tf.data.Dataset) -> None:
    """Fits what is not trained by gradients, on the train split."""
    model.get_layer("bag").adapt(dataset)


def optimizer(learning_rate: Any, batch_size: int) -> tf_keras.optimizers.Optimizer:
    """Adagrad with an accumulator that starts below a single n-gram's squared gradient.

    A mean over the batch makes that gradient 1 / batch_size, so the accumulator follows; with the
    usual 0.1 rare n-grams would hardly learn at all.
    """
    accumulator = _FIRST_ACCUMULATOR * (_AT_BATCH / batch_size) ** 2
    return tf_keras.optimizers.Adagrad(
        learning_rate, initial_accumulator_value=accumulator, epsilon=1e-12
    )
