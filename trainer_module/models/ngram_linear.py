"""ngram_linear: logistic regression on the hashed n-grams of a review."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform
from trainer_module.models import Exported, bags

FEATURES = (features.NGRAMS,)
LEARNING_RATE = 0.03
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (0.01, 0.2, "log"),
    "length_power": (0.0, 1.0, "linear"),
    "scale_floor": (0.03, 1.0, "log"),
    "scale_smoothing": (0.1, 10.0, "log"),
}

_FIRST_ACCUMULATOR = 1e-6
_ROUNDS = 20


class Hyperparameters(bags.BagHyperparameters):
    """The sum of weights and their scale, and the size of the exported model."""

    compressed: bool = False
    """Export each weight with 8 bits instead of 64, its scale included. No training can continue
    from such a model."""


def ngram_ids(*, static_shapes: bool) -> Any:
    """Return the input NGRAMS of a model, int64 ids.

    Args:
      static_shapes: whether the input is a Tensor [batch, width], in which -1 is padding. Otherwise
        it is a RaggedTensor [batch, (n-grams)].
    """
    return tf_keras.Input([None], dtype=tf.int64, ragged=not static_shapes, name=features.NGRAMS)


def build(
    hyperparameters: Hyperparameters,
    transform: Transform,
    labels: Labels,
    *,
    static_shapes: bool = False,
) -> tf_keras.Model:
    """Build a model {ngrams: see `ngram_ids`} -> logits, float32 [batch, logits]."""
    ngrams = ngram_ids(static_shapes=static_shapes)
    logits = bags.make_bag(transform, labels, hyperparameters)(ngrams)
    return tf_keras.Model({features.NGRAMS: ngrams}, logits, name="ngram_linear")


def optimizer(learning_rate: Any) -> tf_keras.optimizers.Optimizer:
    """Return Adagrad whose accumulator starts near the squared gradient of a single n-gram.

    The loss is a mean over the batch, so the gradient of a rare n-gram is about 1 / batch_size.
    With the usual accumulator of 0.1 it would hardly learn. The start does not depend on the batch
    size: with large batches, steps are few and learning rates are high, and the accumulator should
    damp the first steps.

    Args:
      learning_rate: a number or a schedule of Keras.
    """
    return tf_keras.optimizers.legacy.Adagrad(
        learning_rate, initial_accumulator_value=_FIRST_ACCUMULATOR, epsilon=1e-12
    )


adapt = bags.adapt


def exported(model: tf_keras.Model, hyperparameters: Hyperparameters) -> Exported:
    """Return the models to export.

    Args:
      model: the trained model.
      hyperparameters: with `compressed`, both models are a copy with one byte for each weight.
        Otherwise a warm start continues from `model`, and the served model of two classes is a copy
        with the same logits, bit for bit, see `FoldedNgramBag`.
    """
    if hyperparameters.compressed:
        compressed = _compressed(model)
        return Exported(served=compressed, base=compressed)
    if model.get_layer(bags.BAG).labels.is_binary:
        return Exported(served=_folded(model), base=model)
    # The rows of many classes are long, and the time of their scale is small.
    return Exported(served=model, base=model)


def _compressed(model: tf_keras.Model) -> tf_keras.Model:
    """Return a copy of a trained model with one byte for each weight."""
    trained = model.get_layer(bags.BAG)
    places, levels = quantize(trained.scaled_table())
    bag = bags.compressed_bag(trained)
    copy = _with_bag(model, bag)
    bag.places.assign(places)
    bag.levels.assign(levels)
    bag.bias.assign(trained.bias)
    return copy


def _folded(model: tf_keras.Model) -> tf_keras.Model:
    """Return a copy of a trained model of two classes with the products of weights and scale."""
    trained = model.get_layer(bags.BAG)
    bag = bags.FoldedNgramBag(trained.rows, trained.labels, trained.hyperparameters)
    copy = _with_bag(model, bag)
    bag.table.assign(trained.scaled_table())
    bag.bias.assign(trained.bias)
    return copy


def _with_bag(model: tf_keras.Model, bag: bags.NgramBag) -> tf_keras.Model:
    """Return a model of the inputs of `model` with another bag, whose weights are not set."""
    return tf_keras.Model(model.input, bag(model.input[features.NGRAMS]), name=model.name)


def quantize(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of the nearest level for each value, and the levels.

    The levels are computed as in Lloyd, "Least squares quantization in PCM" (1982): each round
    moves each level to the mean of the values that are nearest to it. The initial levels are dense
    around 0, because most weights are near 0.

    Args:
      values: the weights, of a floating-point dtype and any shape.

    Returns:
      The indices, uint8 in the shape of `values`, and the levels, float32 [256], ascending.
    """

    def middles(levels: np.ndarray) -> np.ndarray:
        return (levels[1:] + levels[:-1]) / 2

    ordered = np.sort(values.astype(np.float64), axis=None)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    steps = np.linspace(-1, 1, bags.LEVELS)
    levels = np.sign(steps) * steps**2 * np.abs(ordered).max()
    for _ in range(_ROUNDS):
        ends = np.concatenate([[0], np.searchsorted(ordered, middles(levels)), [len(ordered)]])
        counts = np.diff(ends)
        means = np.diff(sums[ends]) / np.maximum(counts, 1)
        levels = np.sort(np.where(counts, means, levels))
    levels = levels.astype(np.float32)
    return np.searchsorted(middles(levels), values).astype(np.uint8), levels
