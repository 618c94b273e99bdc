"""Bags of n-grams: layers that add up a learned weight for each hashed n-gram of a review."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tf_keras
from pydantic import Field

from core.settings import Section
from preprocessing.labels import Labels
from preprocessing.settings import Transform, ngram_rows

BAG = "bag"
"""The name of the layer in a model."""
LEVELS = 256
"""The number of levels of compressed weights, which is the number of values of a byte."""
# Within these limits the scale of each n-gram is finite and above 0 in 32 bits.
_ScalePart = Annotated[float, Field(ge=1e-6, le=1e6)]
_TYPICAL_LENGTH = 256
"""Number of n-grams of a review of about 120 words, for which the factor of the sum is 1."""


class BagHyperparameters(Section):
    """The sum of weights and their scale, see `NgramBag` and `ClassBag`."""

    length_power: Annotated[float, Field(ge=0, le=1)] = 0.5
    """0: the logit is the sum of the weights, and long reviews have extreme logits. 1: it is their
    mean, and a single word of a short review counts much. 0.5 is between both."""

    scale_floor: _ScalePart = 0.3
    """Constant that is added to the scale of all n-grams, so that n-grams of all classes learn
    too."""
    scale_smoothing: _ScalePart = 1.0
    """Occurrences that are added to each bucket: of two classes, in each class; of more, in all
    classes together, in the proportions of the classes."""


class NgramBag(tf_keras.layers.Layer):
    """The bag of two classes: the sum of the weights of a review's n-grams, and a bias.

    The sum is divided by (n / 256) ** `length_power`, where n is the number of n-grams, because a
    review of twice the length has less than twice the evidence for a class.

    Each weight is the product of a learned number and a fixed scale, which `adapt` computes. Under
    Adagrad and Adam the scale acts as a learning rate for each bucket: n-grams that distinguish the
    classes learn first.

    The layer is float32 under any policy. In half precision the sum of hundreds of weights would be
    less exact, and the layer has no matrix product that would be faster.

    Input: int64 ids in [0, buckets), a RaggedTensor [batch, (n-grams)] or a Tensor [batch, width]
    in which -1 is padding. Output: float32 [batch, logits].

    Args:
      rows: the rows of the table.
      labels: the classes.
      hyperparameters: the factor of long reviews, and the scale.
    """

    def __init__(self, rows: int, labels: Labels, hyperparameters: BagHyperparameters):
        super().__init__(name=BAG, dtype="float32")
        self.rows, self.labels, self.hyperparameters = rows, labels, hyperparameters

    @property
    def table_initializer(self) -> str | tf_keras.initializers.Initializer:
        """The initializer of the table."""
        return "zeros"

    @property
    def columns(self) -> int:
        """The number of sums of a text."""
        return self.labels.logits

    @property
    def table_shape(self) -> tuple[int, ...]:
        """The shape of the table of weights."""
        return (self.rows,)

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight(
            name="table", shape=self.table_shape, initializer=self.table_initializer
        )
        self.bias = self.add_weight(name="bias", shape=(self.columns,), initializer="zeros")
        self.scale = self.add_weight(
            name="scale", shape=(self.rows,), initializer="ones", trainable=False
        )
        self._is_remote = isinstance(
            tf.distribute.get_strategy(), tf.distribute.ParameterServerStrategy
        )

    def call(self, inputs: tf.RaggedTensor | tf.Tensor, training: bool = False) -> tf.Tensor:
        return self.totals(inputs, training) * self.factors(inputs) + self.bias

    def totals(self, inputs: tf.RaggedTensor | tf.Tensor, training: bool) -> tf.Tensor:
        """Return the sum of the weights of each text, float32 [batch, columns]."""
        if isinstance(inputs, tf.RaggedTensor):
            return self._ragged_totals(inputs, training)
        return self._padded_totals(inputs, training)

    def factors(self, inputs: tf.RaggedTensor | tf.Tensor) -> tf.Tensor:
        """Return the factor of the sum of each text for its length, float32 [batch, 1]."""
        if isinstance(inputs, tf.RaggedTensor):
            lengths = inputs.row_lengths()
        else:
            lengths = tf.math.count_nonzero(inputs >= 0, axis=1)
        relative = tf.maximum(tf.cast(lengths, tf.float32), 1) / _TYPICAL_LENGTH
        return tf.pow(relative, -self.hyperparameters.length_power)[:, tf.newaxis]

    def scaled_table(self) -> np.ndarray:
        """Return the products of weights and scale, float32 [rows] or [rows, classes]."""
        return (self.table * self.scale).numpy()

    def scale_from(self, counts: tf.Tensor) -> tf.Tensor:
        """Return the scale of each row before it is normalised, float32 [rows].

        It is the log-count ratio of Wang and Manning, "Baselines and Bigrams" (2012).

        Args:
          counts: the occurrences of each n-gram by class, float32 [classes, rows].
        """
        smoothed = counts + self.hyperparameters.scale_smoothing
        logs = tf.math.log(smoothed / tf.reduce_sum(smoothed, axis=1, keepdims=True))
        return self.hyperparameters.scale_floor + tf.abs(logs[1] - logs[0])

    def _ragged_totals(self, inputs: tf.RaggedTensor, training: bool) -> tf.Tensor:
        # Equal to value_rowids(), in a tenth of the time.
        rows = inputs.to_sparse().indices[:, 0]
        totals = tf.math.segment_sum(self._weights(inputs.flat_values, training), rows)
        # Empty reviews at the end of the batch have no row id.
        totals = tf.pad(totals, [[0, inputs.nrows() - tf.size(totals, tf.int64)]])
        return totals[:, tf.newaxis]

    def _padded_totals(self, inputs: tf.Tensor, training: bool) -> tf.Tensor:
        weights = self._weights(tf.maximum(inputs, 0), training)
        return tf.reduce_sum(tf.where(inputs < 0, 0.0, weights), axis=1, keepdims=True)

    def _weights(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        # With ids of 32 bits a step takes a fifth less time: TensorFlow adds up the gradient of
        # each row twice as fast. Parameter servers get half of the bytes.
        ids = tf.cast(ids, tf.int32)
        if not self._is_remote and training:
            # The product is gathered, not the table. So the gradient is one dense tensor, which is
            # faster than merging hundreds of thousands of slices.
            return tf.gather(self.table * self.scale, ids)
        if not self._is_remote:
            # The product of whole tables would take most of the time of a short prediction.
            return tf.gather(self.table, ids) * tf.gather(self.scale, ids)
        # The parameter servers send only the rows of the batch, and each row only once. The
        # gradient has the same rows.
        unique, indices = tf.unique(tf.reshape(ids, [-1]))
        table = tf.nn.embedding_lookup(self.table, unique)
        scale = tf.nn.embedding_lookup(self.scale, unique)
        return tf.reshape(tf.gather(table * scale, indices), tf.shape(ids))


class ClassBag(NgramBag):
    """The bag of more than two classes: its table has a column for each of them.

    A dense table of gradients would take most of the time of a step, so of ragged inputs only the
    rows of the batch are read and updated, each once. The table can have fewer rows than there are
    ids, see `preprocessing.settings.ngram_rows`; ids with the same remainder share a row.

    An n-gram has one scale for all classes: how far its distribution over the classes is from that
    of all n-grams, see `scale_from`.
    """

    @property
    def table_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns)

    def scaled_table(self) -> np.ndarray:
        return (self.table * self.scale[:, tf.newaxis]).numpy()

    def scale_from(self, counts: tf.Tensor) -> tf.Tensor:
        """Return the scale of each row before it is normalised, float32 [rows].

        It is the Kullback-Leibler divergence of the classes in which an n-gram occurs from the
        classes of all n-grams. Its mean over all occurrences is the information that n-grams give
        about the class, by which Yang and Pedersen, "A Comparative Study on Feature Selection in
        Text Categorization" (1997), select words. Measured against a ratio for each n-gram and
        class, IDF and a constant: see the laboratory journal.

        Args:
          counts: the occurrences of each n-gram by class, float32 [classes, rows].
        """
        by_class = tf.reduce_sum(counts, axis=1, keepdims=True)
        classes = by_class / tf.reduce_sum(by_class)
        smoothing = self.hyperparameters.scale_smoothing
        occurrences = tf.reduce_sum(counts, axis=0)
        within = (counts + smoothing * classes) / (occurrences + smoothing)
        ratios = tf.math.divide_no_nan(within, classes)
        divergence = tf.reduce_sum(tf.math.xlogy(within, ratios), axis=0)
        return self.hyperparameters.scale_floor + tf.maximum(divergence, 0.0)

    def _ragged_totals(self, inputs: tf.RaggedTensor, training: bool) -> tf.Tensor:
        unique, places = tf.unique(self._row_ids(inputs.flat_values))
        reviews = inputs.to_sparse().indices[:, 0]
        return tf.sparse.segment_sum(
            self._rows(unique), places, reviews, num_segments=inputs.nrows(tf.int32)
        )

    def _padded_totals(self, inputs: tf.Tensor, training: bool) -> tf.Tensor:
        ids = self._row_ids(tf.maximum(inputs, 0))
        # XLA compiles no operation whose result has as many rows as there are different ids. So in
        # a training the whole product is gathered, and the gradient is dense.
        if training:
            rows = tf.gather(self.table * self.scale[:, tf.newaxis], ids)
        else:
            rows = self._rows(ids)
        return tf.reduce_sum(tf.where(inputs[:, :, tf.newaxis] < 0, 0.0, rows), axis=1)

    def _row_ids(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.cast(ids % self.rows, tf.int32)

    def _rows(self, ids: tf.Tensor) -> tf.Tensor:
        scale = tf.nn.embedding_lookup(self.scale, ids)
        return tf.nn.embedding_lookup(self.table, ids) * scale[..., tf.newaxis]


class FoldedNgramBag(NgramBag):
    """An `NgramBag` for predictions only, whose table has the products of weights and scale.

    A prediction reads one number for each n-gram instead of two, in two thirds of the time.
    """

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight("table", shape=self.table_shape, trainable=False)
        self.bias = self.add_weight("bias", shape=(self.columns,), trainable=False)

    def _weights(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        del training
        return tf.gather(self.table, ids)


class _Compressed(tf_keras.layers.Layer):
    """The weights of a compressed bag, for predictions only: indices into a table of levels."""

    table_shape: tuple[int, ...]
    labels: Labels

    def build(self, input_shape: Any) -> None:
        self.places = self.add_weight(
            name="places", shape=self.table_shape, dtype="uint8", trainable=False
        )
        self.levels = self.add_weight(name="levels", shape=(LEVELS,), trainable=False)
        self.bias = self.add_weight(name="bias", shape=(self.labels.logits,), trainable=False)

    def _values(self, ids: tf.Tensor) -> tf.Tensor:
        return tf.gather(self.levels, tf.cast(tf.gather(self.places, ids), tf.int32))


class CompressedNgramBag(_Compressed, NgramBag):
    """An `NgramBag` with one byte for each weight, uint8 [rows]."""

    def _weights(self, ids: tf.Tensor, training: bool) -> tf.Tensor:
        del training
        return self._values(ids)


class CompressedClassBag(_Compressed, ClassBag):
    """A `ClassBag` with one byte for each weight, uint8 [rows, classes]."""

    def _rows(self, ids: tf.Tensor) -> tf.Tensor:
        return self._values(ids)


def make_bag(transform: Transform, labels: Labels, hyperparameters: BagHyperparameters) -> NgramBag:
    """Return the bag for a number of classes.

    Args:
      transform: the settings of the features.
      labels: the classes.
      hyperparameters: the factor of long reviews, and the scale.
    """
    kind = NgramBag if labels.is_binary else ClassBag
    return kind(ngram_rows(transform.ngram_buckets, labels), labels, hyperparameters)


def compressed_bag(bag: NgramBag) -> NgramBag:
    """Return a compressed bag of the shape of `bag`, whose weights are not set.

    Args:
      bag: a bag of `make_bag`.
    """
    kind = CompressedNgramBag if bag.labels.is_binary else CompressedClassBag
    return kind(bag.rows, bag.labels, bag.hyperparameters)


def adapt(model: tf_keras.Model, counts: tf.Tensor | np.ndarray) -> None:
    """Compute the scale of the bag; the mean over all occurrences of n-grams becomes 1.

    Args:
      model: the model, which has a layer BAG.
      counts: the occurrences of each n-gram by class, [classes, rows].
    """
    bag = model.get_layer(BAG)
    counts = tf.cast(counts, tf.float32)
    occurrences = tf.reduce_sum(counts, axis=0)
    if not tf.reduce_any(occurrences > 0):
        return
    scale = bag.scale_from(counts)
    mean = tf.reduce_sum(scale * occurrences) / tf.reduce_sum(occurrences)
    bag.scale.assign(scale / mean)
