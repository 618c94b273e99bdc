"""my_model: the mean of the word embeddings of a text, and a dense layer.

`training.model` is the name of this file. Each file in this folder is a model; the guide "Add a
model" describes the names that it defines.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from core.settings import PositiveInt, Section
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform
from trainer_module.models.layers import DropoutRate, adam, embedding, logits, word_ids


class Hyperparameters(Section):
    """The keys of `training.hyperparameters`."""

    embedding_width: PositiveInt = 64
    dropout: DropoutRate = 0.2


FEATURES = (features.TOKENS,)
LEARNING_RATE = 1e-2
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (1e-3, 3e-2, "log"),
    "embedding_width": [32, 64, 128],
    "dropout": (0.0, 0.5, "linear"),
}


class MeanOfWords(tf_keras.layers.Layer):
    """The mean of the word vectors, without padding.

    Input: vectors float [batch, width, size] and ids int64 [batch, width]. Output: [batch, size].
    """

    def call(self, vectors: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
        is_word = tf.cast(tokens != features.PADDING_TOKEN, vectors.dtype)[:, :, tf.newaxis]
        words = tf.maximum(tf.reduce_sum(is_word, axis=1), 1)
        return tf.reduce_sum(vectors * is_word, axis=1) / words


def build(
    hyperparameters: Hyperparameters,
    transform: Transform,
    labels: Labels,
    *,
    static_shapes: bool = False,
) -> tf_keras.Model:
    """Return a model {tokens: int64 [batch, width]} -> logits, float32 [batch, logits].

    Args:
      hyperparameters: sizes of the layers.
      transform: the settings that the tokens were made with.
      labels: the classes.
      static_shapes: whether the width is always `max_tokens`.
    """
    tokens = word_ids(transform, static_shapes=static_shapes)
    vectors = embedding(transform, hyperparameters.embedding_width)(tokens)
    x = MeanOfWords(name="mean")(vectors, tokens)
    x = tf_keras.layers.Dropout(hyperparameters.dropout, name="dropout")(x)
    return tf_keras.Model({features.TOKENS: tokens}, logits(x, tokens, labels))


optimizer = adam
