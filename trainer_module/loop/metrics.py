"""The loss and the accuracy, and their means in both loops.

All means are over real Examples. The padding of a batch to its static shape has weight 0, and is
not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras


def _loss(label: tf.Tensor, logit: tf.Tensor) -> tf.Tensor:
    """Return the loss of each Example, [batch]: the mean over its logits."""
    each = tf.broadcast_to(label, tf.shape(logit))
    return tf_keras.losses.binary_crossentropy(each, logit, from_logits=True)


_FUNCTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "loss": (_loss, {}),
    "accuracy": (tf_keras.metrics.binary_accuracy, {"threshold": 0.0}),
}
"""Name of a metric -> function of (label, logit), and its further arguments."""
NAMES = tuple(_FUNCTIONS)
"""The names of the metrics, the loss first."""


def keras_metrics() -> list[tf_keras.metrics.Metric]:
    """Return Keras metrics over steps and replicas, for `compile(weighted_metrics=...)`."""
    return [
        tf_keras.metrics.MeanMetricWrapper(function, name=name, **arguments)
        for name, (function, arguments) in _FUNCTIONS.items()
    ]


def sums(label: tf.Tensor, logit: tf.Tensor, weight: tf.Tensor | None) -> dict[str, tf.Tensor]:
    """Return name of a metric -> [sum over the Examples, number of Examples], float32 [2].

    Args:
      label: float32 [batch, 1].
      logit: float32 [batch, logits]. A model of several parts has a logit for each of them, and the
        value of an Example is the mean over its logits.
      weight: float32 [batch], 0 for padding; None: no Example is padding.
    """
    if weight is None:
        weight = tf.ones_like(label[:, 0])
    examples = tf.reduce_sum(weight)
    return {
        name: tf.stack([tf.reduce_sum(weight * function(label, logit, **arguments)), examples])
        for name, (function, arguments) in _FUNCTIONS.items()
    }


def step_means(
    label: tf.Tensor, logit: tf.Tensor, weight: tf.Tensor | None
) -> dict[str, tf.Tensor]:
    """Return name of a metric -> mean over a batch, float32 []; `sums` lists the shapes."""
    return {
        name: total_and_count[0] / tf.maximum(total_and_count[1], 1.0)
        for name, total_and_count in sums(label, logit, weight).items()
    }


def mean_loss(label: tf.Tensor, logit: tf.Tensor, weight: tf.Tensor | None) -> tf.Tensor:
    """Return the mean loss of a batch, float32 []; 0 without Examples. `sums` lists the shapes."""
    total, examples = tf.unstack(sums(label, logit, weight)["loss"])
    return total / tf.maximum(examples, 1.0)


def means(totals: Mapping[str, Any]) -> dict[str, float]:
    """Return the means for `totals`, the sum of `sums` over many batches."""
    return {name: float(total / max(count, 1.0)) for name, (total, count) in totals.items()}
