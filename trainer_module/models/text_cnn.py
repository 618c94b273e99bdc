"""text_cnn: word embeddings, convolutions of several widths, and their maxima over the review.

After Kim, "Convolutional Neural Networks for Sentence Classification" (2014).
"""

from __future__ import annotations

from typing import Annotated, Any

import tf_keras
from pydantic import Field

from core.settings import PositiveInt, Section
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform
from trainer_module.models.layers import DropoutRate, Padding, adam, embedding, logits, word_ids


class Hyperparameters(Section):
    """Hyperparameters with defaults for a CPU; Kim's are width 300 and 100 filters of each size."""

    embedding_width: PositiveInt = 128
    filters: PositiveInt = 64
    """Filters of each kernel size."""
    kernel_sizes: Annotated[str, Field(pattern=r"^[1-9]\d?(,[1-9]\d?)*$")] = "2,3,4"
    """Kernel sizes in words, separated by commas."""
    dropout: DropoutRate = 0.3
    """Dropout of the maxima."""

    @property
    def sizes(self) -> list[int]:
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
    # With this padding, each word occurs at each position of a window of every convolution, and at
    # least one window has only padding. So more padding adds no new windows and changes no maximum.
    longest = max(hyperparameters.sizes)
    x = Padding(longest - 1, longest, name="padding")(tokens)
    x = embedding(transform, hyperparameters.embedding_width)(x)
    maxima = [
        layers.GlobalMaxPooling1D(name=f"maximum_{size}")(
            layers.Conv1D(hyperparameters.filters, size, name=f"convolution_{size}")(x)
        )
        for size in hyperparameters.sizes
    ]
    # ReLU and maximum commute, and there are far fewer values after the maximum.
    x = layers.ReLU(name="relu")(layers.Concatenate(name="maxima")(maxima))
    x = layers.Dropout(hyperparameters.dropout, name="dropout")(x)
    return tf_keras.Model({features.TOKENS: tokens}, logits(x, tokens, labels), name="text_cnn")


optimizer = adam
