"""The common layers of the sequence models: the input, the embedding table, the logit."""

from __future__ import annotations

from typing import Annotated, Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from preprocessing import features
from preprocessing.settings import Transform

DropoutRate = Annotated[float, Field(ge=0.0, lt=1.0)]


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
