"""cnn_lstm: word embeddings, a convolution, max pooling, an LSTM, a logistic output.

What lies beside a review is padding, and padding is a row of the embedding table like any word.
As much of it as a window can reach is always there, on both sides, so a review's logit does not
depend on how wide its batch is, and no layer needs a mask.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from core.settings import PositiveInt, Section
from preprocessing import features
from preprocessing.settings import Transform
from trainer_module.models.shared.optimizers import adam
from trainer_module.models.shared.words import DropoutRate, embedding, logit, word_ids

_POOL = 2


class Hyperparameters(Section):
    """The defaults are those of the reference experiment, but for its recurrent dropout of 0.2."""

    embedding_width: PositiveInt = 200
    filters: PositiveInt = 64
    kernel_size: PositiveInt = 3
    """Of the convolution, in words."""
    lstm_units: PositiveInt = 128
    dropout: DropoutRate = 0.0
    """Of what the LSTM reads and of its answer."""
    recurrent_dropout: DropoutRate = 0.0
    """Of the LSTM's own state; above 0 there is no fused kernel, and a GPU is many times slower."""


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


class Beside(tf_keras.layers.Layer):
    """Puts the padding that windows of `kernel_size` words reach on both sides of a review.

    A convolution of the output without padding of its own has one step more than the input is
    wide: the step after the last word is there for the pooling to look at, however full the row.
    Without an example or a word one is made up, because the fused LSTM takes no empty tensor.

    Input: int64 [batch, width]. Output: int64 [max(batch, 1), max(width, 1) + kernel_size].
    """

    def __init__(self, kernel_size: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._left = (kernel_size - 1) // 2
        self._right = kernel_size - self._left

    def call(self, tokens: tf.Tensor) -> tf.Tensor:
        missing = [
            max(1 - static, 0) if static is not None else tf.maximum(1 - dynamic, 0)
            for static, dynamic in zip(tokens.shape, tf.unstack(tf.shape(tokens)), strict=True)
        ]
        return tf.pad(
            tokens,
            [[0, missing[0]], [self._left, self._right + missing[1]]],
            constant_values=features.PADDING_TOKEN,
        )


class LastState(tf_keras.layers.Layer):
    """The state after a review's last word.

    Inputs: states [max(batch, 1), steps, units], each step `_POOL` words; tokens [batch, width].
    Output: [batch, units].
    """

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        states, tokens = inputs
        words = tf.math.count_nonzero(tokens, axis=1, dtype=tf.int32)
        last = tf.maximum((words + _POOL - 1) // _POOL, 1) - 1
        return tf.gather_nd(states, tf.stack([tf.range(tf.size(last)), last], axis=1))


def build(
    hyperparameters: Hyperparameters, transform: Transform, *, static_shapes: bool = False
) -> tf_keras.Model:
    """A model {tokens: int64 [batch, width], 0 pads} -> logit of positive, float32 [batch, 1].

    Args:
      hyperparameters: of the layers.
      transform: the settings that the tokens were made with.
      static_shapes: the width is always `max_tokens`, and XLA can compile the model.
    """
    layers = tf_keras.layers
    tokens = word_ids(transform, static_shapes=static_shapes)
    x = Beside(hyperparameters.kernel_size, name="beside")(tokens)
    x = embedding(transform, hyperparameters.embedding_width)(x)
    x = layers.Conv1D(
        hyperparameters.filters, hyperparameters.kernel_size, activation="relu", name="convolution"
    )(x)
    x = layers.MaxPooling1D(_POOL, name="pooling")(x)
    # Every step's state is asked for, and the right one picked: steps after it cost nothing more
    # than a mask would, and without a mask the kernels are faster.
    recurrent = {
        "dropout": hyperparameters.dropout,
        "recurrent_dropout": hyperparameters.recurrent_dropout,
    }
    if static_shapes:
        # The layer that picks cuDNN's kernel on a GPU does so under XLA too, which has none.
        cell = layers.LSTMCell(hyperparameters.lstm_units, **recurrent)
        lstm = layers.RNN(cell, return_sequences=True, name="lstm")
    else:
        lstm = layers.LSTM(
            hyperparameters.lstm_units, return_sequences=True, name="lstm", **recurrent
        )
    x = LastState(name="last_state")((lstm(x), tokens))
    x = layers.Dropout(hyperparameters.dropout, name="dropout")(x)
    return tf_keras.Model({features.TOKENS: tokens}, logit(x), name="cnn_lstm")


optimizer = adam
