"""The steps of a training and of an evaluation, which both loops take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from trainer_module.loop import metrics

Step = Callable[[Any], dict[str, tf.Tensor]]
"""The computation of a replica in one step: batch -> name of a figure -> value."""
Record = Callable[[tf.Tensor, tf.Tensor, tf.Tensor | None], dict[str, tf.Tensor]]
"""A function of (label, logit, weight) that records metrics and returns the figures of a step."""


def train_step(model: tf_keras.Model, record: Record | None = None) -> Step:
    """Return a training step like Keras's own train_step, but without reading metrics.

    Without `record` the step adds the batch to the model's metrics and returns the batch's means.
    """
    record = record or _into_keras(model)

    def step(data: Any) -> dict[str, tf.Tensor]:
        inputs, label, weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            logit = model(inputs, training=True)
            # The mean over this replica's Examples, divided by the replicas; the optimizer sums
            # the gradients over them.
            loss = metrics.mean_loss(label, logit, weight)
            loss /= model.distribute_strategy.num_replicas_in_sync
        model.optimizer.minimize(loss, model.trainable_variables, tape=tape)
        return record(label, logit, weight)

    return _without_autograph(step)


def test_step(model: tf_keras.Model, record: Record | None = None) -> Step:
    """Return an evaluation step; see `train_step` for `record`."""
    record = record or _into_keras(model)

    def step(data: Any) -> dict[str, tf.Tensor]:
        inputs, label, weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        return record(label, model(inputs, training=False), weight)

    return _without_autograph(step)


class Trainable(tf_keras.Model):
    """A functional model for which Keras's `fit` and `evaluate` execute our steps.

    `Trainable(net.input, net.output)` has the layers of `net`.
    """

    @tf.autograph.experimental.do_not_convert
    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        """See Keras."""
        return train_step(self)(data)

    @tf.autograph.experimental.do_not_convert
    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        """See Keras."""
        return test_step(self)(data)


def _into_keras(model: tf_keras.Model) -> Record:
    def record(
        label: tf.Tensor, logit: tf.Tensor, weight: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        model.compiled_metrics.update_state(label, logit, weight)
        return metrics.step_means(label, logit, weight)

    return record


def _without_autograph(step: Step) -> Step:
    """Return `step` without conversion by AutoGraph.

    AutoGraph excludes TensorFlow's own `keras`, but not the package `tf_keras`. It would convert
    Keras itself, which takes ten seconds before the first step and changes nothing.
    """
    untouched: Step = tf.autograph.experimental.do_not_convert(step)
    return untouched
