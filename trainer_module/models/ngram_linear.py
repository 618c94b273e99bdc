"""ngram_linear: logistic regression with one weight for each hashed n-gram of a review."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from preprocessing import features
from preprocessing.settings import Transform
from trainer_module.models import ngram_bag
from trainer_module.models.ngram_bag import BAG, BagHyperparameters, NgramBag, ngram_ids

FEATURES = (features.NGRAMS,)
LEARNING_RATE = 0.03
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (0.01, 0.2, "log"),
    "length_power": (0.0, 1.0, "linear"),
    "scale_floor": (0.03, 1.0, "log"),
    "scale_smoothing": (0.1, 10.0, "log"),
}

_FIRST_ACCUMULATOR = 1e-6
_LEVELS = 256
"""The number of levels of compressed weights, as many as a byte has values."""
_ROUNDS = 20


class Hyperparameters(BagHyperparameters):
    """The sum of weights and their scale, and the size of the exported model."""

    compressed: bool = False
    """Export each weight with 8 bits instead of 64, its scale included. No training can continue
    from such a model."""


class CompressedBag(NgramBag):
    """An `NgramBag` for predictions only, with the place of each weight in a table of levels."""

    def build(self, input_shape: Any) -> None:
        self.places = self.add_weight(
            name="places", shape=(self._buckets,), dtype="uint8", trainable=False
        )
        self.levels = self.add_weight(name="levels", shape=(_LEVELS,), trainable=False)
        self.bias = self.add_weight(name="bias", shape=(1,), trainable=False)

    def _weights(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        del training
        return tf.gather(self.levels, tf.cast(tf.gather(self.places, ids), tf.int32))


def build(
    hyperparameters: Hyperparameters, transform: Transform, *, static_shapes: bool = False
) -> tf_keras.Model:
    """Build a model {ngrams: int64 ids} -> logit of positive, float32 [batch, 1].

    The ids are a RaggedTensor [batch, (n-grams)], or with `static_shapes` a Tensor [batch, width]
    in which -1 is padding.
    """
    ngrams = ngram_ids(static_shapes=static_shapes)
    logit = ngram_bag.bag(transform, hyperparameters)(ngrams)
    return tf_keras.Model({features.NGRAMS: ngrams}, logit, name="ngram_linear")


def exported(model: tf_keras.Model, hyperparameters: Hyperparameters) -> tf_keras.Model:
    """Return the model to export: `model`, or with `compressed` a copy with a byte a weight."""
    if not hyperparameters.compressed:
        return model
    trained = model.get_layer(BAG)
    weights = (trained.table * trained.scale).numpy()
    bag = CompressedBag(len(weights), hyperparameters, name=BAG, dtype="float32")
    output = bag(model.input[features.NGRAMS])
    levels = fit_levels(weights)
    bag.places.assign(nearest_levels(weights, levels))
    bag.levels.assign(levels)
    bag.bias.assign(trained.bias)
    return tf_keras.Model(model.input, output, name=model.name)


def fit_levels(values: np.ndarray) -> np.ndarray:
    """Return the levels with a small mean squared distance to `values`.

    Lloyd, "Least squares quantization in PCM" (1982): each round moves each level to the mean of
    the values that are nearest to it. The first levels are dense around 0, where most weights are.

    Args:
      values: float [count], at least one.

    Returns:
      float32 [_LEVELS], sorted.
    """
    ordered = np.sort(values.astype(np.float64))
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    steps = np.linspace(-1, 1, _LEVELS)
    levels = np.sign(steps) * steps**2 * np.abs(ordered).max()
    for _ in range(_ROUNDS):
        ends = np.concatenate([[0], np.searchsorted(ordered, _middles(levels)), [len(ordered)]])
        counts = np.diff(ends)
        means = np.diff(sums[ends]) / np.maximum(counts, 1)
        levels = np.sort(np.where(counts, means, levels))
    return levels.astype(np.float32)


def nearest_levels(values: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the place of the level that is nearest to each value, uint8 of the shape of values."""
    return np.searchsorted(_middles(levels), values).astype(np.uint8)


def _middles(levels: np.ndarray) -> np.ndarray:
    return (levels[1:] + levels[:-1]) / 2


def optimizer(learning_rate: Any) -> tf_keras.optimizers.Optimizer:
    """Return Adagrad whose accumulator starts near the squared gradient of a single n-gram.

    The loss is a mean over the batch, so the gradient of a rare n-gram is about 1 / batch_size.
    With the usual accumulator of 0.1 it would hardly learn. The start does not depend on the batch
    size: with large batches, steps are few and learning rates high, and the accumulator should damp
    the first steps.
    """
    return tf_keras.optimizers.legacy.Adagrad(
        learning_rate, initial_accumulator_value=_FIRST_ACCUMULATOR, epsilon=1e-12
    )


adapt = ngram_bag.adapt
