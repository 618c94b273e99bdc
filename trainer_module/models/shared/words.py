"""What the models of words have in common: their input, the embedding table, the logit."""

from __future__ import annotations

from typing import Annotated, Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from preprocessing import features
from preprocessing.settings import Transform

DropoutRate = Annotated[float, Field(ge=0.0, lt=1.0)]


def word_ids(transform: Transform, *, static_shapes: bool) -> Any:
    """The input {tokens}: int64 [batch, width], where with `static_shapes` the width is
    `max_tokens`."""
    width = transform.max_tokens if static_shapes else None
    return tf_keras.Input([width], dtype=tf.int64, name=features.TOKENS)


def embedding(transform: Transform, width: int) -> DenseGradientEmbedding:
    """The table of the vocabulary, padding and the unknown word included."""
    rows = transform.vocabulary_size + features.FIRST_TOKEN
    return DenseGradientEmbedding(rows, width, name="embedding")


def logit(x: Any) -> Any:
    """[batch, width] -> [batch, 1], float32 under a mixed precision policy too."""
    return tf_keras.layers.Dense(1, dtype=tf.float32, name="logit")(x)


class DenseGradientEmbedding(tf_keras.layers.Embedding):
    """An embedding whose table gets its gradient as one dense tensor.

    Keras's own gets a slice for each word of the batch, repeated words and padding included. Of
    512 reviews that is several times the table, to be sent between replicas and merged there: a
    step of two workers took a quarter more CPU time.
    """

    def build(self, input_shape: Any = None) -> None:
        # There a worker fetches the rows that it needs, not the table.
        self._is_remote = isinstance(
            tf.distribute.get_strategy(), tf.distribute.ParameterServerStrategy
        )
        super().build(input_shape)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        if self._is_remote:
            return super().call(inputs)
        # Read from a product and not from the variable, which would get the slices themselves.
        rows = tf.gather(tf.multiply(self.embeddings, 1.0), inputs)
        # Cast only now, so that the gradients of a frequent word are added up in float32.
        return tf.cast(rows, self.compute_dtype)
