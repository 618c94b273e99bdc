"""cnn_lstm: word embeddings, a convolution, max pooling, an LSTM, a logistic output.

Reviews are padded on both sides. The padding has a row in the embedding table, like any word, and
is as wide as a window of the convolution can reach. So the logit of a review does not depend on the
width of its batch, and no layer requires a mask.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from core.settings import PositiveInt, Section
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform
from trainer_module.models.layers import DropoutRate, Padding, adam, embedding, logits, word_ids

_POOL = 2


class Hyperparameters(Section):
    """The hyperparameters of the reference experiment, except its recurrent dropout of 0.2."""

    embedding_width: PositiveInt = 200
    filters: PositiveInt = 64
    kernel_size: PositiveInt = 3
    """Window of the convolution, in words."""
    lstm_units: PositiveInt = 128
    dropout: DropoutRate = 0.0
    """Dropout of the LSTM's inputs and of its output."""
    recurrent_dropout: DropoutRate = 0.0
    """Dropout of the LSTM's state. Above 0 a GPU uses no fused kernel and is many times slower."""


FEATURES = (features.TOKENS,)
LEARNING_RATE = 3e-3
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (1e-3, 1e-2, "log"),
    "embedding_width": [100, 200, 300],
    "filters": [64, 128],
    "kernel_size": [3, 5],
    "lstm_units": [64, 128, 256],
    "dropout": (0.0, 0.5, "linear"),
}


class LastState(tf_keras.layers.Layer):
    """A layer that selects the state of the LSTM after the last word of a review.

    Inputs: states [max(batch, 1), steps, units], each step `_POOL` words; tokens [batch, width].
    Output: [batch, units].
    """

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        states, tokens = inputs
        words = tf.math.count_nonzero(tokens, axis=1, dtype=tf.int32)
        last = tf.maximum((words + _POOL - 1) // _POOL, 1) - 1
        return tf.gather_nd(states, tf.stack([tf.range(tf.size(last)), last], axis=1))


def build(
    hyperparameters: Hyperparameters,
    transform: Transform,
    labels: Labels,
    *,
    static_shapes: bool = False,
) -> tf_keras.Model:
    """Build a model {tokens: int64 [batch, width], padding 0} -> logits; see `models`."""
    layers = tf_keras.layers
    tokens = word_ids(transform, static_shapes=static_shapes)
    # A convolution over this padding, without padding of its own, has one step more than the input
    # has words. So the pooling always has a step after the last word.
    before = (hyperparameters.kernel_size - 1) // 2
    x = Padding(before, hyperparameters.kernel_size - before, name="padding")(tokens)
    x = embedding(transform, hyperparameters.embedding_width)(x)
    x = layers.Conv1D(
        hyperparameters.filters, hyperparameters.kernel_size, activation="relu", name="convolution"
    )(x)
    x = layers.MaxPooling1D(_POOL, name="pooling")(x)
    # The LSTM returns the states of all steps, and LastState selects one. A mask would not avoid
    # the cost of the later steps, and without a mask the kernels are faster.
    recurrent = {
        "dropout": hyperparameters.dropout,
        "recurrent_dropout": hyperparameters.recurrent_dropout,
    }
    if static_shapes:
        # On a GPU, layers.LSTM selects cuDNN's kernel, which XLA does not support.
        cell = layers.LSTMCell(hyperparameters.lstm_units, **recurrent)
        lstm = layers.RNN(cell, return_sequences=True, name="lstm")
    else:
        lstm = layers.LSTM(
            hyperparameters.lstm_units, return_sequences=True, name="lstm", **recurrent
        )
    x = LastState(name="last_state")((lstm(x), tokens))
    x = layers.Dropout(hyperparameters.dropout, name="dropout")(x)
    return tf_keras.Model({features.TOKENS: tokens}, logits(x, tokens, labels), name="cnn_lstm")


optimizer = adam
