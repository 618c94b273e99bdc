"""transformer: a small pre-norm encoder over pairs of words, averaged over the review.

After Vaswani et al., "Attention Is All You Need" (2017), with the normalisation before each block
as in Xiong et al., "On Layer Normalization in the Transformer Architecture" (2020). Before the
blocks a strided convolution combines a few words into one step, because attention between the words
of 1,024 reviews of 500 words would require 4 GB for each block.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras
from pydantic import model_validator

from core.settings import PositiveInt, Section
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform
from trainer_module.models.layers import (
    DenseGradientEmbedding,
    DropoutRate,
    Padding,
    adam,
    embedding,
    logits,
    word_ids,
)


class Hyperparameters(Section):
    """Hyperparameters with defaults that are small enough for a CPU."""

    width: PositiveInt = 64
    """Width of the vectors, from the embedding to the last block."""
    words_per_step: PositiveInt = 2
    """Stride of the convolution, whose windows overlap by half; 1: every word is a step."""
    layers: PositiveInt = 2
    heads: PositiveInt = 4
    """Heads of the attention; each has an equal part of `width`."""
    feed_forward_width: PositiveInt = 128
    dropout: DropoutRate = 0.1
    """Dropout of each block's output and of the average."""

    @model_validator(mode="after")
    def _heads_share_width(self) -> Hyperparameters:
        if self.width % self.heads:
            raise ValueError(f"width: {self.width} is not a multiple of the {self.heads} heads")
        return self


FEATURES = (features.TOKENS,)
LEARNING_RATE = 5e-3
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (1e-3, 1e-2, "log"),
    "width": [32, 64, 128],
    "words_per_step": [1, 2, 4],
    "layers": [1, 2, 3],
    "feed_forward_width": [64, 128, 256],
    "dropout": (0.0, 0.3, "linear"),
}


class Steps(tf_keras.layers.Layer):
    """A layer that combines every few words into one vector (a step) with a learned position.

    Step i is a convolution around word i * `stride`. Its window extends up to the central words of
    the neighbouring steps, without these words. Outside the review the window contains padding,
    which has a row in the embedding table, like any word.

    Input: int64 [batch, width]. Outputs, with the batch of `Padding`: vectors [batch, steps,
    vector_width]; bool [batch, steps], whether the central word of the step is not padding. The
    number of steps is width / stride, rounded up.

    Args:
      transform: the settings of the features.
      stride: number of words between the centres of two steps.
      vector_width: width of the vectors.
    """

    def __init__(self, transform: Transform, stride: int, vector_width: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._beside, self._stride = stride - 1, stride
        self._words = embedding(transform, vector_width)
        self._pad = Padding(self._beside, self._beside)
        self._convolution = tf_keras.layers.Conv1D(
            vector_width, 2 * stride - 1, stride, activation="gelu", name="convolution"
        )
        self._positions = DenseGradientEmbedding(
            -(-transform.max_tokens // stride), vector_width, name="positions"
        )

    def call(self, tokens: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        padded = self._pad(tokens)
        vectors = self._convolution(self._words(padded))
        steps = tf.shape(vectors)[1]
        real = tf.not_equal(padded[:, self._beside :: self._stride], features.PADDING_TOKEN)
        return vectors + self._positions(tf.range(steps)), real[:, :steps]


# Keras's MultiHeadAttention takes a third more CPU time (138 instead of 104 ms for the gradients of
# 256 reviews of 72 steps), and no training could start from earlier models: its weights have other
# shapes.
class SelfAttention(tf_keras.layers.Layer):
    """A layer of multi-head scaled dot-product attention to the steps that are not padding.

    Inputs: vectors [batch, steps, vector_width]; real bool [batch, steps].
    Output: [batch, steps, vector_width].
    """

    def __init__(self, heads: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._heads = heads

    def build(self, input_shape: Any) -> None:
        self._vector_width = input_shape[0][-1]
        self._project = tf_keras.layers.Dense(3 * self._vector_width, name="project")
        self._combine = tf_keras.layers.Dense(self._vector_width, name="combine")
        super().build(input_shape)

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        vectors, real = inputs
        head_width = self._vector_width // self._heads
        shape = tf.shape(real)
        split = tf.reshape(self._project(vectors), [shape[0], shape[1], 3, self._heads, head_width])
        query, key, value = tf.unstack(tf.transpose(split, [2, 0, 3, 1, 4]))
        scores = tf.matmul(query * head_width**-0.5, key, transpose_b=True)
        # Half of the minimum of the dtype, so that its sum with a score is finite.
        hidden = tf.where(real, 0.0, 0.5 * scores.dtype.min)
        weights = tf.nn.softmax(scores + tf.cast(hidden, scores.dtype)[:, None, None, :])
        mixed = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        return self._combine(tf.reshape(mixed, [shape[0], shape[1], self._vector_width]))


# Keras's GlobalAveragePooling1D returns NaN for a review without steps.
class MeanOfSteps(tf_keras.layers.Layer):
    """A layer that averages the steps of a review; zeros for a review without steps.

    Inputs: vectors [batch, steps, vector_width]; real bool [batch, steps].
    Output: float32 [batch, vector_width].
    """

    def call(self, inputs: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        vectors, real = inputs
        counted = tf.cast(real, tf.float32)[:, :, None]
        total = tf.reduce_sum(tf.cast(vectors, tf.float32) * counted, axis=1)
        return tf.math.divide_no_nan(total, tf.reduce_sum(counted, axis=1))


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
    stride = hyperparameters.words_per_step
    steps = Steps(transform, stride, hyperparameters.width, name="steps")
    x, real = steps(tokens)
    for number in range(1, hyperparameters.layers + 1):
        normal = layers.LayerNormalization(name=f"attention_norm_{number}")(x)
        change = SelfAttention(hyperparameters.heads, name=f"attention_{number}")((normal, real))
        x += layers.Dropout(hyperparameters.dropout)(change)
        normal = layers.LayerNormalization(name=f"feed_forward_norm_{number}")(x)
        hidden = layers.Dense(hyperparameters.feed_forward_width, "relu", name=f"hidden_{number}")
        change = layers.Dense(hyperparameters.width, name=f"feed_forward_{number}")(hidden(normal))
        x += layers.Dropout(hyperparameters.dropout)(change)
    x = layers.LayerNormalization(name="norm")(x)
    x = layers.Dropout(hyperparameters.dropout)(MeanOfSteps(name="mean")((x, real)))
    return tf_keras.Model({features.TOKENS: tokens}, logits(x, tokens, labels), name="transformer")


optimizer = adam
