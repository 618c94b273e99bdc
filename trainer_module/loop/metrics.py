"""The loss and the accuracy of single Examples, and the means that every loop makes of them.

All means are over the Examples that are there: what fills up a batch to its static shape weighs 0,
and counts neither above nor below the fraction line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tf_keras

_FUNCTIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "loss": (tf_keras.losses.binary_crossentropy, {"from_logits": True}),
    "accuracy": (tf_keras.metrics.binary_accuracy, {"threshold": 0.0}),
}
"""Name -> function of (label, logit), and its further arguments."""


def keras_metrics() -> list[tf_keras.metrics.Metric]:
    """Metrics that add up over steps and replicas; for `compile(weighted_metrics=...)`."""
    return [
        tf_keras.metrics.MeanMetricWrapper(function, name=name, **arguments)
        for name, (function, arguments) in _FUNCTIONS.items()
    ]


def sums(label: tf.Tensor, logit: tf.Tensor, weight: tf.Tensor | None) -> dict[str, tf.Tensor]:
    """Name -> [sum over the Examples, how many they are], float32 [2].

    Args:
      label: float32 [batch, 1].
      logit: the same.
      weight: float32 [batch], 0 for what is not there; None: everything is.
    """
    if weight is None:
        weight = tf.ones_like(label[:, 0])
    examples = tf.reduce_sum(weight)
    return {
        name: tf.stack([tf.reduce_sum(weight * function(label, logit, **arguments)), examples])
        for name, (function, arguments) in _FUNCTIONS.items()
    }


def mean_loss(label: tf.Tensor, logit: tf.Tensor, weight: tf.Tensor | None) -> tf.Tensor:
    """The mean loss of a batch, float32 []; 0 where no Example is there. `sums` has the shapes."""
    total, examples = tf.unstack(sums(label, logit, weight)["loss"])
    return total / tf.maximum(examples, 1.0)


def means(totals: Mapping[str, Any]) -> dict[str, float]:
    """What `sums` of many batches, added up, are on average."""
    return {name: float(total / max(count, 1.0)) for name, (total, count) in totals.items()}
