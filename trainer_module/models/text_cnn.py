"""text_cnn: word embeddings, convolutions of several widths, the maximum of each over the review.

After Kim, "Convolutional Neural Networks for Sentence Classification" (2014).
"""

from __future__ import annotations

from typing import Annotated, Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from core.settings import PositiveInt, Section
from preprocessing import features
from preprocessing.settings import Transform
from trainer_module.models.shared.optimizers import adam
from trainer_module.models.shared.words import DropoutRate, embedding, logit, word_ids


class Hyperparameters(Section):
    """Smaller than Kim's (width 300, 100 filters of each size), so that a CPU does."""

    embedding_width: PositiveInt = 128
    filters: PositiveInt = 64
    """Of each kernel size."""
    kernel_sizes: Annotated[str, Field(pattern=r"^[1-9]\d?(,[1-9]\d?)*$")] = "2,3,4"
    """In words, separated by commas."""
    dropout: DropoutRate = 0.3
    """Of the maxima."""

    @property
    def sizes(self) -> list[int]:
        """`kernel_sizes` as numbers."""
        return [int(size) for size in self.kernel_sizes.split(",")]


FEATURES = (features.TOKENS,)
LEARNING_RATE = 6e-3
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (1e-3, 2e-2, "log"),
    "embedding_width": [64, 128, 256],
    "filters": [32, 64, 128],
    "kernel_sizes": ["2,3", "2,3,4", "3,4,5"],
    "dropout": (0.0, 0.5, "linear"),
}


class Around(tf_keras.layers.Layer):
    """Puts padding around a review: `size` - 1 before it and `size` behind.

    So every convolution of up to `size` words sees each word at each place of its window, and
    nothing but padding at least once. More padding brings no other window and changes no maximum.

    Input: int64 [batch, width]. Output: int64 [batch, width + 2 * size - 1].
    """

    def __init__(self, size: int, **kwargs: Any):
        super().__init__(**kwargs)
        self._size = size

    def call(self, tokens: tf.Tensor) -> tf.Tensor:
        paddings = [[0, 0], [self._size - 1, self._size]]
        return tf.pad(tokens, paddings, constant_values=features.PADDING_TOKEN)


def build(
    hyperparameters: Hyperparameters, transform: Transform, *, static_shapes: bool = False
) -> tf_keras.Model:
    """A model {tokens: int64 [batch, width], 0 pads} -> logit of positive, float32 [batch, 1].

    A review's logit does not depend on the width.

    Args:
      hyperparameters: of the layers.
      transform: the settings that the tokens were made with.
      static_shapes: the width is always `max_tokens`.
    """
    layers = tf_keras.layers
    tokens = word_ids(transform, static_shapes=static_shapes)
    x = Around(max(hyperparameters.sizes), name="around")(tokens)
    x = embedding(transform, hyperparameters.embedding_width)(x)
    maxima = [
        layers.GlobalMaxPooling1D(name=f"maximum_{size}")(
            layers.Conv1D(hyperparameters.filters, size, name=f"convolution_{size}")(x)
        )
        for size in hyperparameters.sizes
    ]
    # After the maximum instead of before it: the same numbers, and far fewer of them.
    x = layers.ReLU(name="relu")(layers.Concatenate(name="maxima")(maxima))
    x = layers.Dropout(hyperparameters.dropout, name="dropout")(x)
    return tf_keras.Model({features.TOKENS: tokens}, logit(x), name="text_cnn")


optimizer = adam
