"""ngram_linear: logistic regression with one weight for each hashed n-gram of a review."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tf_keras
from pydantic import Field

from core.settings import Section
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.settings import Transform

FEATURES = (features.NGRAMS,)
LEARNING_RATE = 0.03
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (0.01, 0.2, "log"),
    "length_power": (0.0, 1.0, "linear"),
    "scale_floor": (0.03, 1.0, "log"),
    "scale_smoothing": (0.1, 10.0, "log"),
}

BAG = "bag"
"""The name of the layer in a model."""
_TYPICAL_LENGTH = 256
"""Number of n-grams of a review of about 120 words, for which the factor of the sum is 1."""
_FIRST_ACCUMULATOR = 1e-6
_LEVELS = 256
"""The number of levels of compressed weights, which is the number of values of a byte."""
_ROUNDS = 20


class BagHyperparameters(Section):
    """The sum of weights and their scale, see `NgramBag`."""

    length_power: Annotated[float, Field(ge=0, le=1)] = 0.5
    """0: the logit is the sum of the weights, and long reviews have extreme logits. 1: it is their
    mean, and a single word of a short review counts much. 0.5 is between both."""

    scale_floor: Annotated[float, Field(gt=0)] = 0.3
    """Constant that is added to all log-count ratios, so that n-grams of both classes learn too."""
    scale_smoothing: Annotated[float, Field(gt=0)] = 1.0
    """Occurrences that are added to each bucket in each class."""


class Hyperparameters(BagHyperparameters):
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


class NgramBag(tf_keras.layers.Layer):
    """An embedding bag with a column for each logit: the sum of the weights of a review's n-grams,
    and a bias.

    The sum is divided by (n / 256) ** `length_power`, where n is the number of n-grams, because a
    review of twice the length has less than twice the evidence for a class.

    Each weight is the product of a learned number and a fixed scale that `adapt` computes: the
    log-count ratio of Wang and Manning, "Baselines and Bigrams" (2012). Under Adagrad and Adam it
    acts as a learning rate for each bucket: n-grams that distinguish the classes learn first. With
    more than two classes, each logit has the ratio of its class and all others.

    The layer is float32 under any policy. In half precision the sum of hundreds of weights would be
    less exact, and the layer has no matrix product that would be faster.

    Input: int64 ids in [0, buckets), a RaggedTensor [batch, (n-grams)] or a Tensor [batch, width]
    in which -1 is padding. Output: float32 [batch, logits].

    Args:
      buckets: the number of n-gram ids.
      logits: see `Labels.logits`.
      hyperparameters: the factor of long reviews, and the scale.
    """

    def __init__(self, buckets: int, logits: int, hyperparameters: BagHyperparameters):
        super().__init__(name=BAG, dtype="float32")
        self.hyperparameters = hyperparameters
        self._logits = logits
        # A table with one column would be as large, and slower.
        self._shape = (buckets,) if logits == 1 else (buckets, logits)

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight(name="table", shape=self._shape, initializer="zeros")
        self.bias = self.add_weight(name="bias", shape=(self._logits,), initializer="zeros")
        self.scale = self.add_weight(
            name="scale", shape=self._shape, initializer="ones", trainable=False
        )
        # The product of tables with many columns would take most of the time of a step.
        self._gathers_rows = self._logits > 1 or isinstance(
            tf.distribute.get_strategy(), tf.distribute.ParameterServerStrategy
        )

    def call(self, inputs: tf.RaggedTensor | tf.Tensor, training: bool = False) -> tf.Tensor:
        if isinstance(inputs, tf.RaggedTensor):
            # Equal to value_rowids(), in a tenth of the time.
            rows = inputs.to_sparse().indices[:, 0]
            totals = tf.math.segment_sum(self._weights(inputs.flat_values, training), rows)
            totals = self._columns(totals)
            # Empty reviews at the end of the batch have no row id.
            totals = tf.pad(totals, [[0, inputs.nrows(tf.int32) - tf.shape(totals)[0]], [0, 0]])
            lengths = inputs.row_lengths()
        else:
            weights = self._weights(tf.maximum(inputs, 0), training)
            real = inputs >= 0
            is_counted = real if self._logits == 1 else real[:, :, tf.newaxis]
            totals = self._columns(tf.reduce_sum(tf.where(is_counted, weights, 0.0), axis=1))
            lengths = tf.math.count_nonzero(real, axis=1)
        relative = tf.maximum(tf.cast(lengths, tf.float32), 1) / _TYPICAL_LENGTH
        factor = tf.pow(relative, -self.hyperparameters.length_power)
        return totals * factor[:, tf.newaxis] + self.bias

    def _columns(self, totals: tf.Tensor) -> tf.Tensor:
        return tf.reshape(totals, [-1, self._logits])

    def _weights(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        # With ids of 32 bits a step takes a fifth less time: TensorFlow adds up the gradient of
        # each row twice as fast. Parameter servers get half of the bytes.
        ids = tf.cast(ids, tf.int32)
        if not self._gathers_rows and training:
            # The product is gathered, not the table. So the gradient is one dense tensor, which is
            # faster than merging hundreds of thousands of slices.
            return tf.gather(self.table * self.scale, ids)
        if not self._gathers_rows:
            # The product of whole tables would take most of the time of a short prediction.
            return tf.gather(self.table, ids) * tf.gather(self.scale, ids)
        # Only the rows that the batch needs are read, each once; under parameter servers they are
        # sent. The gradient has the same rows.
        unique, places = tf.unique(tf.reshape(ids, [-1]))
        table = tf.nn.embedding_lookup(self.table, unique)
        scale = tf.nn.embedding_lookup(self.scale, unique)
        rows = tf.gather(table * scale, places)
        return tf.reshape(rows, tf.concat([tf.shape(ids), self._shape[1:]], axis=0))


class CompressedBag(NgramBag):
    """An `NgramBag` for predictions only; the weights are indices into a table of levels.

    Its variable `places` has these indices, uint8 [buckets].
    """

    def build(self, input_shape: Any) -> None:
        self.places = self.add_weight(
            name="places", shape=self._shape, dtype="uint8", trainable=False
        )
        self.levels = self.add_weight(name="levels", shape=(_LEVELS,), trainable=False)
        self.bias = self.add_weight(name="bias", shape=(self._logits,), trainable=False)

    def _weights(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        del training
        return tf.gather(self.levels, tf.cast(tf.gather(self.places, ids), tf.int32))


def build(
    hyperparameters: Hyperparameters,
    transform: Transform,
    labels: Labels,
    *,
    static_shapes: bool = False,
) -> tf_keras.Model:
    """Build a model {ngrams: see `ngram_ids`} -> logits, float32 [batch, logits]."""
    ngrams = ngram_ids(static_shapes=static_shapes)
    logits = NgramBag(transform.ngram_buckets, labels.logits, hyperparameters)(ngrams)
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


def adapt(model: tf_keras.Model, counts: tf.Tensor | np.ndarray) -> None:
    """Fit the scale of the bag to the occurrences of each n-gram by class, [classes, buckets]."""
    bag = model.get_layer(BAG)
    counts = tf.cast(counts, tf.float32)
    occurrences = tf.reduce_sum(counts, axis=0)
    if not tf.reduce_any(occurrences > 0):
        return
    # The mean scale over all occurrences of n-grams becomes 1.
    total = tf.reduce_sum(occurrences)
    scales = []
    for ratios in _log_count_ratios(counts, occurrences, bag.hyperparameters.scale_smoothing):
        scale = bag.hyperparameters.scale_floor + tf.abs(ratios)
        scales.append(scale / (tf.reduce_sum(scale * occurrences) / total))
    bag.scale.assign(scales[0] if len(scales) == 1 else tf.stack(scales, axis=1))


def _log_count_ratios(
    counts: tf.Tensor, occurrences: tf.Tensor, smoothing: float
) -> Iterator[tf.Tensor]:
    """Yield the log-count ratio of each n-gram, float32 [buckets], for each logit."""
    if counts.shape[0] == 2:
        smoothed = counts + smoothing
        logs = tf.math.log(smoothed / tf.reduce_sum(smoothed, axis=1, keepdims=True))
        yield logs[1] - logs[0]
        return
    for own in tf.unstack(counts):
        one, others = own + smoothing, occurrences - own + smoothing
        yield tf.math.log(one / tf.reduce_sum(one)) - tf.math.log(others / tf.reduce_sum(others))


def exported(model: tf_keras.Model, hyperparameters: Hyperparameters) -> tf_keras.Model:
    """Return the model to export.

    Args:
      model: the trained model.
      hyperparameters: with `compressed`, the result is a copy with one byte for each weight.
        Otherwise it is `model` itself.
    """
    if not hyperparameters.compressed:
        return model
    trained = model.get_layer(BAG)
    indices, levels = quantize((trained.table * trained.scale).numpy())
    small = CompressedBag(len(indices), trained.bias.shape[0], hyperparameters)
    output = small(model.input[features.NGRAMS])
    small.places.assign(indices)
    small.levels.assign(levels)
    small.bias.assign(trained.bias)
    return tf_keras.Model(model.input, output, name=model.name)


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
    steps = np.linspace(-1, 1, _LEVELS)
    levels = np.sign(steps) * steps**2 * np.abs(ordered).max()
    for _ in range(_ROUNDS):
        ends = np.concatenate([[0], np.searchsorted(ordered, middles(levels)), [len(ordered)]])
        counts = np.diff(ends)
        means = np.diff(sums[ends]) / np.maximum(counts, 1)
        levels = np.sort(np.where(counts, means, levels))
    levels = levels.astype(np.float32)
    return np.searchsorted(middles(levels), values).astype(np.uint8), levels
