"""ngram_linear: one weight per hashed n-gram, summed over a review, and a logistic output."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import tensorflow as tf
import tf_keras
from pydantic import Field

from core.settings import Section
from preprocessing import features
from preprocessing.settings import Transform

FEATURES = (features.NGRAMS,)
LEARNING_RATE = 0.05
SEARCH_SPACE: dict[str, Any] = {
    "learning_rate": (0.01, 0.2, "log"),
    "scale_floor": (0.03, 1.0, "log"),
    "scale_smoothing": (0.1, 10.0, "log"),
}

Batches = Iterable[tuple[dict[str, Any], tf.Tensor]]
Sum = Callable[[tf.Tensor], tf.Tensor]

_LAYER = "bag"
_FIRST_ACCUMULATOR = 1e-6


class Hyperparameters(Section):
    """Of the scale that `adapt` computes; see `NgramBag`."""

    scale_floor: Annotated[float, Field(gt=0)] = 0.3
    """Added to every log-count ratio, so that n-grams of both classes learn as well."""
    scale_smoothing: Annotated[float, Field(gt=0)] = 1.0
    """Occurrences added to each bucket in each class."""


class NgramBag(tf_keras.layers.Layer):
    """An embedding bag of width 1: the sum of the weights of a review's n-grams, and a bias.

    Each weight is the product of a learned number and a fixed scale that `adapt` computes: how
    much more often the n-gram's bucket occurs in one class than in the other, as the log-count
    ratio of Wang and Manning, "Baselines and Bigrams" (2012). Under Adagrad the scale acts as a
    learning rate of the bucket's own: n-grams that tell the classes apart learn first.

    Input: int64 ids in [0, buckets), a RaggedTensor [batch, (n-grams)] or a Tensor [batch, width]
    in which -1 is padding. Output: float32 [batch, 1].
    """

    def __init__(self, buckets: int, hyperparameters: Hyperparameters, **kwargs: Any):
        super().__init__(**kwargs)
        self._buckets = buckets
        self._floor = hyperparameters.scale_floor
        self._smoothing = hyperparameters.scale_smoothing

    def build(self, input_shape: Any) -> None:
        self.table = self.add_weight(name="table", shape=(self._buckets,), initializer="zeros")
        self.bias = self.add_weight(name="bias", shape=(1,), initializer="zeros")
        self.scale = self.add_weight(
            name="scale", shape=(self._buckets,), initializer="ones", trainable=False
        )
        self._is_remote = isinstance(
            tf.distribute.get_strategy(), tf.distribute.ParameterServerStrategy
        )

    def call(self, inputs: tf.RaggedTensor | tf.Tensor) -> tf.Tensor:
        if isinstance(inputs, tf.RaggedTensor):
            # What value_rowids() says too, in a tenth of the time.
            rows = inputs.to_sparse().indices[:, 0]
            totals = tf.math.segment_sum(self._weights(inputs.flat_values), rows)
            # Empty reviews at the end of the batch are in no row id.
            totals = tf.pad(totals, [[0, inputs.nrows() - tf.size(totals, tf.int64)]])
        else:
            weights = self._weights(tf.maximum(inputs, 0))
            totals = tf.reduce_sum(tf.where(inputs < 0, 0.0, weights), axis=1)
        return totals[:, tf.newaxis] + self.bias

    def _weights(self, ids: tf.Tensor) -> tf.Tensor:
        if not self._is_remote:
            # Read from the product and not from the table: the gradient is then one dense tensor,
            # faster to make and to apply than hundreds of thousands of slices are to merge.
            return tf.gather(self.table * self.scale, ids)
        # Only what the batch needs leaves the parameter servers, each id once, and as much goes
        # back as gradient.
        unique, places = tf.unique(tf.reshape(ids, [-1]))
        table = tf.nn.embedding_lookup(self.table, unique)
        scale = tf.nn.embedding_lookup(self.scale, unique)
        return tf.reshape(tf.gather(table * scale, places), tf.shape(ids))

    def adapt(self, dataset: Batches, sum_over_processes: Sum = tf.identity) -> None:
        """See `adapt` below."""
        # A tensor and not a tf.Variable, which a strategy would mirror or shard.
        counts = tf.zeros([2, self._buckets])
        for inputs, labels in dataset:
            counts += self._count(inputs[features.NGRAMS], labels)
        counts = sum_over_processes(counts)
        occurrences = tf.reduce_sum(counts, axis=0)
        if not tf.reduce_any(occurrences > 0):
            return
        smoothed = counts + self._smoothing
        logs = tf.math.log(smoothed / tf.reduce_sum(smoothed, axis=1, keepdims=True))
        scale = self._floor + tf.abs(logs[1] - logs[0])
        # On average over all n-grams that are read the scale is 1.
        mean = tf.reduce_sum(scale * occurrences) / tf.reduce_sum(occurrences)
        self.scale.assign(scale / mean)

    @tf.function(autograph=False, reduce_retracing=True)
    def _count(self, ids: tf.RaggedTensor | tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """How often each bucket occurs in negative and positive reviews: float32 [2, buckets]."""
        by_class = []
        for label in (0, 1):
            of_class = tf.gather(ids, tf.where(labels[:, 0] == label)[:, 0])
            if isinstance(of_class, tf.RaggedTensor):
                of_class = of_class.flat_values
            ones = tf.ones_like(of_class, tf.float32)
            # Drops the padding, as it does all negative segments.
            by_class.append(tf.math.unsorted_segment_sum(ones, of_class, self._buckets))
        return tf.stack(by_class)


def build(
    hyperparameters: Hyperparameters, transform: Transform, *, static_shapes: bool = False
) -> tf_keras.Model:
    """A model {ngrams: int64 ids} -> logit of positive, float32 [batch, 1].

    The ids are a RaggedTensor [batch, (n-grams)], or with `static_shapes` a Tensor [batch, width]
    in which -1 is padding.
    """
    ngrams = tf_keras.Input([None], dtype=tf.int64, ragged=not static_shapes, name=features.NGRAMS)
    # float32 under any policy: there is no matrix product here that half precision could speed
    # up, only a sum of hundreds of weights that it would blur.
    bag = NgramBag(transform.ngram_buckets, hyperparameters, name=_LAYER, dtype="float32")
    return tf_keras.Model({features.NGRAMS: ngrams}, bag(ngrams), name="ngram_linear")


def adapt(model: tf_keras.Model, dataset: Batches, sum_over_processes: Sum = tf.identity) -> None:
    """Fits the scale, which is not trained by gradients, in one pass over the train split.

    Args:
      model: what `build` returned.
      dataset: batches of ({ngrams: ids}, label [batch, 1]), read once; a few thousand reviews
        each are fastest. Where several processes train in step, this one's share.
      sum_over_processes: what a tensor of each of them adds up to.
    """
    model.get_layer(_LAYER).adapt(dataset, sum_over_processes)


def optimizer(learning_rate: Any) -> tf_keras.optimizers.Optimizer:
    """Adagrad with an accumulator that starts near a single n-gram's squared gradient.

    With the usual 0.1 rare n-grams would hardly learn at all: a mean over the batch makes their
    gradient about 1 / batch_size. The accumulator still does not follow the batch: in large ones
    it had better damp the first steps, which are few and come with a high learning rate.
    """
    return tf_keras.optimizers.legacy.Adagrad(
        learning_rate, initial_accumulator_value=_FIRST_ACCUMULATOR, epsilon=1e-12
    )
