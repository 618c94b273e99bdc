"""Layers and the optimizer of the models of words, in forms that every strategy supports."""

from __future__ import annotations

from typing import Annotated, Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform

DropoutRate = Annotated[float, Field(ge=0.0, lt=1.0)]
_MAX_NORM = 1.0


def word_ids(transform: Transform, *, static_shapes: bool) -> Any:
    """Return the input TOKENS of a model, int64 [batch, width].

    Args:
      transform: the settings of the features.
      static_shapes: whether the width is always `max_tokens`.
    """
    width = transform.max_tokens if static_shapes else None
    return tf_keras.Input([width], dtype=tf.int64, name=features.TOKENS)


def embedding(transform: Transform, width: int) -> DenseGradientEmbedding:
    """Return the embedding layer of the vocabulary, with rows for padding and unknown words.

    Args:
      transform: the settings of the features, with the size of the vocabulary.
      width: the number of values in a row.
    """
    rows = transform.vocabulary_size + features.FIRST_TOKEN
    return DenseGradientEmbedding(rows, width, name="embedding")


def logits(x: Any, tokens: Any, labels: Labels, *, name: str = "logit") -> Any:
    """Apply a dense layer, [max(batch, 1), width] -> [batch, logits], float32 under any policy.

    Args:
      x: [max(batch, 1), width]; `Padding` adds a review to an empty batch.
      tokens: the input TOKENS, whose batch the result has.
      labels: the classes.
      name: the name of the layer.
    """
    dense = tf_keras.layers.Dense(labels.logits, dtype=tf.float32, name=name)
    return dense(x)[: tf.shape(tokens)[0]]


class Padding(tf_keras.layers.Layer):
    """A layer that adds padding before and after each review.

    The layer adds a review to an empty batch, which is the batch of a replica without Examples in
    the last step of an epoch. For an empty batch the convolution and the maximum of oneDNN return
    wrong shapes (TensorFlow 2.16 on an AMD EPYC; `TF_ENABLE_ONEDNN_OPTS=0` returns correct ones),
    and the fused LSTM fails.

    Input: int64 [batch, width]. Output: int64 [max(batch, 1), before + words + after], where
    `words` is the width, rounded up to a multiple of `multiple` that is not 0.
    """

    def __init__(self, before: int = 0, after: int = 0, multiple: int = 1, **kwargs: Any):
        super().__init__(**kwargs)
        self._before, self._after, self._multiple = before, after, multiple

    def call(self, tokens: tf.Tensor) -> tf.Tensor:
        rows, words = (
            _missing(dynamic if static is None else static, multiple)
            for static, dynamic, multiple in zip(
                tokens.shape, tf.unstack(tf.shape(tokens)), (1, self._multiple), strict=True
            )
        )
        paddings = [[0, rows], [self._before, self._after + words]]
        return tf.pad(tokens, paddings, constant_values=features.PADDING_TOKEN)


def _missing(size: Any, multiple: int) -> Any:
    """Return the difference between `size`, an int or a tensor, and the next positive multiple."""
    larger = -(-size // multiple) * multiple
    wanted = max(larger, multiple) if isinstance(size, int) else tf.maximum(larger, multiple)
    return wanted - size


class DenseGradientEmbedding(tf_keras.layers.Embedding):
    """An embedding layer with a dense gradient.

    The gradient of Keras's own layer has a slice for each word of the batch, including repeated
    words and padding. For 512 reviews the slices are several times as large as the table, and the
    replicas have to exchange and merge them. A step of two workers took a quarter more CPU time.
    """

    def build(self, input_shape: Any = None) -> None:
        # Under parameter servers a worker fetches only the rows of its batch.
        self._is_remote = isinstance(
            tf.distribute.get_strategy(), tf.distribute.ParameterServerStrategy
        )
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        if self._is_remote:
            return super().call(inputs)
        # Gathering from a product makes the gradient dense; from the variable, it would be slices.
        rows = tf.gather(tf.multiply(self.embeddings, 1.0), inputs)
        # The cast comes last, so that the gradients of a frequent word are summed in float32.
        return tf.cast(rows, self.compute_dtype)


def adam(learning_rate: Any) -> tf_keras.optimizers.Optimizer:
    """Return Adam with gradients clipped to a global norm of 1, after the sum over all replicas.

    It is one of Keras's legacy optimizers, because under CentralStorageStrategy the new ones do not
    support learning rate schedules. Under that strategy neither supports `global_clipnorm`, so this
    module clips the gradients. Adam updates every row of an embedding table at each step, which
    takes a few percent of a step of these models.

    Args:
      learning_rate: a number or a schedule of Keras.
    """
    return FusedAdam(learning_rate, gradient_transformers=[_clip])


class FusedAdam(tf_keras.optimizers.legacy.Adam):
    """Adam whose update of a variable is a single operation, also for a sparse gradient.

    Under parameter servers the workers update the same variables without waiting for each other.
    Keras updates a table by several operations, each of which overwrites the values that another
    worker has written in the meantime (keras issue 18668). If a worker divides its momentum by a
    variance that was reset to zero, a weight changes by 100 instead of 0.001.

    Here the gradient is made dense on the device of the variable, and TensorFlow's operation for
    dense gradients locks the variable and both moments. The numbers are the same, because Adam
    changes all rows at each step.
    """

    def _resource_apply_sparse_duplicate_indices(
        self, grad: tf.Tensor, handle: tf.Variable, indices: tf.Tensor, **options: Any
    ) -> tf.Operation:
        dense = tf.math.unsorted_segment_sum(grad, indices, handle.shape[0])
        return self._resource_apply_dense(dense, handle, **options)


def _clip(gradients: list[tuple[Any, tf.Variable]]) -> list[tuple[Any, tf.Variable]]:
    values, variables = zip(*gradients, strict=True)
    clipped, _ = tf.clip_by_global_norm(list(map(_merged, values)), _MAX_NORM)
    return list(zip(clipped, variables, strict=True))


def _merged(gradient: tf.Tensor | tf.IndexedSlices) -> tf.Tensor | tf.IndexedSlices:
    """Return a gradient with one slice for each row.

    The replicas have a slice each for a row, and TensorFlow computes the norm of all slices instead
    of that of their sum.
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)
