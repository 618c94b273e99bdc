"""Layers and the optimizer of the models of words, in forms that every strategy supports."""

from __future__ import annotations

from typing import Annotated, Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from preprocessing import features
from preprocessing.settings import Transform

DropoutRate = Annotated[float, Field(ge=0.0, lt=1.0)]
_MAX_NORM = 1.0


def word_ids(transform: Transform, *, static_shapes: bool) -> Any:
    """Return the input TOKENS: int64 [batch, width]; with `static_shapes` width is `max_tokens`."""
    width = transform.max_tokens if static_shapes else None
    return tf_keras.Input([width], dtype=tf.int64, name=features.TOKENS)


def embedding(transform: Transform, width: int) -> DenseGradientEmbedding:
    """Return the embedding table of the vocabulary, with rows for padding and unknown words."""
    rows = transform.vocabulary_size + features.FIRST_TOKEN
    return DenseGradientEmbedding(rows, width, name="embedding")


def logit(x: Any, *, name: str = "logit") -> Any:
    """Apply a dense layer, [batch, width] -> [batch, 1], float32 under any precision policy."""
    return tf_keras.layers.Dense(1, dtype=tf.float32, name=name)(x)


class DenseGradientEmbedding(tf_keras.layers.Embedding):
    """An embedding layer with a dense gradient.

    The gradient of Keras's own layer has a slice for each word of the batch, including repeated
    words and padding. For 512 reviews the slices are several times as large as the table, and
    replicas must exchange and merge them: a step of two workers took a quarter more CPU time.
    """

    def build(self, input_shape: Any = None) -> None:
        # Under parameter servers a worker fetches only the rows that it needs.
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


class Convolution(tf_keras.layers.Conv1D):
    """Keras's Conv1D, also for a batch without reviews.

    A replica without Examples for the last step of an epoch gets an empty batch. For such a batch
    the convolution of oneDNN returns a tensor with the channels of its input (TensorFlow 2.16 on an
    AMD EPYC; with `TF_ENABLE_ONEDNN_OPTS=0` the channels are right). So one row is added to an
    empty batch, and removed from the result.
    """

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        rows = inputs.shape[0]
        if rows is None:
            rows = tf.shape(inputs)[0]
            filled = tf.cond(tf.equal(rows, 0), lambda: _with_a_row(inputs), lambda: inputs)
            filled.set_shape(inputs.shape)
        else:
            filled = inputs if rows else _with_a_row(inputs)
        return super().call(filled)[:rows]


def _with_a_row(inputs: tf.Tensor) -> tf.Tensor:
    return tf.pad(inputs, [[0, 1], [0, 0], [0, 0]])


def adam(learning_rate: Any) -> tf_keras.optimizers.Optimizer:
    """Return Adam with gradients clipped to a global norm of 1, after the sum over all replicas.

    It is one of Keras's legacy optimizers: under CentralStorageStrategy the new ones do not support
    learning rate schedules. Under that strategy both refuse `global_clipnorm`, so the clipping is a
    function of this module. Adam updates every row of an embedding table at each step, which takes
    a few percent of a step of these models.
    """
    return tf_keras.optimizers.legacy.Adam(learning_rate, gradient_transformers=[_clip])


def _clip(gradients: list[tuple[Any, tf.Variable]]) -> list[tuple[Any, tf.Variable]]:
    values, variables = zip(*gradients, strict=True)
    clipped, _ = tf.clip_by_global_norm(values, _MAX_NORM)
    return list(zip(clipped, variables, strict=True))
