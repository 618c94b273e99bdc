"""The optimizer of the sequence models, in a form that every strategy supports."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

_LARGEST_NORM = 1.0

Gradients = list[tuple[Any, tf.Variable]]


def adam(learning_rate: Any) -> tf_keras.optimizers.Optimizer:
    """Return Adam with gradients clipped to a global norm of 1, after the sum over all replicas.

    It is one of Keras's legacy optimizers: under CentralStorageStrategy the new ones do not support
    learning rate schedules. Under that strategy both refuse `global_clipnorm`, so the clipping is a
    function of this module. Adam updates every row of an embedding table at each step, which takes
    a few percent of a step of these models.
    """
    return tf_keras.optimizers.legacy.Adam(learning_rate, gradient_transformers=[_clip])


def _clip(gradients: Gradients) -> Gradients:
    values, variables = zip(*gradients, strict=True)
    clipped, _ = tf.clip_by_global_norm(values, _LARGEST_NORM)
    return list(zip(clipped, variables, strict=True))
