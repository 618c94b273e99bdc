"""wide_and_deep: a bag of n-grams and pyramids of convolutions, whose logits are averaged.

The bag is wide and each pyramid is deep, as in Cheng et al., "Wide & Deep Learning for Recommender
Systems" (2016). The pyramid is after Johnson and Zhang, "Deep Pyramid Convolutional Neural Networks
for Text Categorization" (2017).

Each part is trained on the loss of its own logit, and not on that of the sum as in Cheng et al. The
bag learns much faster than a pyramid, and the loss of the sum would have a small gradient for every
review that the bag already classifies. All parts share one optimizer, because every strategy
supports that; the bag is as good under Adam as under Adagrad, to about 0.001.
"""

from __future__ import annotations

from typing import Annotated, Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from core.settings import PositiveInt
from preprocessing import features
from preprocessing.settings import Transform
from trainer_module.models import ngram_bag
from trainer_module.models.layers import DropoutRate, adam, embedding, logit, word_ids
from trainer_module.models.pyramid import Pyramid


class Hyperparameters(ngram_bag.BagHyperparameters):
    """The hyperparameters of the bag and of the pyramids, with defaults for a CPU."""

    pyramids: PositiveInt = 1
    """Number of pyramids, which differ only in their first weights."""
    embedding_width: PositiveInt = 128
    filters: PositiveInt = 96
    """Filters of each convolution."""
    blocks: Annotated[int, Field(ge=1, le=8)] = 3
    """Blocks of two convolutions; between two blocks the review is shortened by half. With 8 blocks
    a step of the last one has 128 words, to a multiple of which every review is padded."""
    word_dropout: DropoutRate = 0.1
    """Fraction of words that a step of the training leaves out."""
    dropout: DropoutRate = 0.3
    """Dropout of the maxima."""


FEATURES = (features.NGRAMS, features.TOKENS)
LEARNING_RATE = 4e-3
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (1e-3, 1e-2, "log"),
    "filters": [64, 96, 128],
    "blocks": [2, 3, 4],
    "word_dropout": (0.0, 0.3, "linear"),
    "dropout": (0.0, 0.5, "linear"),
}


class MeanOfParts(tf_keras.layers.Layer):
    """A layer that returns the mean of the parts' logits; in a training, all logits.

    Inputs: a list of float32 [batch, 1]. Output: float32 [batch, 1]; in a training [batch, parts].
    """

    def call(self, inputs: list[tf.Tensor], training: bool = False) -> tf.Tensor:
        logits = tf.concat(inputs, axis=1)
        return logits if training else tf.reduce_mean(logits, axis=1, keepdims=True)


def build(
    hyperparameters: Hyperparameters, transform: Transform, *, static_shapes: bool = False
) -> tf_keras.Model:
    """Build a model {ngrams: see `ngram_ids`, tokens: int64 [batch, width], padding 0} -> logit.

    The logit of positive is float32 [batch, 1]; in a training, there is one for each part, [batch,
    1 + pyramids]. A review's logit does not depend on the width.

    Args:
      hyperparameters: the hyperparameters of the layers.
      transform: the settings of the n-grams and the tokens.
      static_shapes: the width is always `max_tokens`, and the n-grams are padded.
    """
    ngrams = ngram_bag.ngram_ids(static_shapes=static_shapes)
    tokens = word_ids(transform, static_shapes=static_shapes)
    parts = [ngram_bag.bag(transform, hyperparameters)(ngrams)]
    for number in range(1, hyperparameters.pyramids + 1):
        pyramid = Pyramid(
            embedding(transform, hyperparameters.embedding_width),
            filters=hyperparameters.filters,
            blocks=hyperparameters.blocks,
            word_dropout=hyperparameters.word_dropout,
            name=f"pyramid_{number}",
        )
        x = tf_keras.layers.Dropout(hyperparameters.dropout)(pyramid(tokens))
        parts.append(logit(x, name=f"logit_{number}"))
    output = MeanOfParts(name="mean", dtype="float32")(parts)
    return tf_keras.Model(
        {features.NGRAMS: ngrams, features.TOKENS: tokens}, output, name="wide_and_deep"
    )


optimizer = adam
adapt = ngram_bag.adapt
