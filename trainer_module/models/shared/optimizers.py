"""The optimizer of the sequence models, in the form that every strategy takes."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

_LARGEST_NORM = 1.0

Gradients = list[tuple[Any, tf.Variable]]


def adam(learning_rate: Any) -> tf_keras.optimizers.Optimizer:
    """Adam on gradients cut to a global norm of 1, summed over all replicas.

    Of Keras's two generations of optimizers this is the older one: the newer cannot follow a
    learning rate schedule under CentralStorageStrategy, and refuses `global_clipnorm` there, as
    this one does; so the cutting is a function of ours. Adam touches every row of an embedding
    table at each step, which is a few percent of a step of these models.
    """
    return tf_keras.optimizers.legacy.Adam(learning_rate, gradient_transformers=[_cut])


def _cut(gradients: Gradients) -> Gradients:
    values, variables = zip(*gradients, strict=True)
    cut, _ = tf.clip_by_global_norm(values, _LARGEST_NORM)
    return list(zip(cut, variables, strict=True))
