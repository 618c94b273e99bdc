"""The steps of a training and of an evaluation, which both loops take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from trainer_module.loop import metrics

Step = Callable[[Any], dict[str, tf.Tensor]]
"""A batch of a replica -> its figures by name."""
Record = Callable[[tf.Tensor, tf.Tensor, tf.Tensor | None], dict[str, tf.Tensor]]
"""(label, logit, weight) of a batch -> what the step returns."""


def train_step(model: tf_keras.Model, record: Record | None = None) -> Step:
    """What a replica does in a step: Keras's own train_step, but that reads no metrics.

    Without `record` it adds the batch to the model's metrics, and returns its loss.
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

    return _as_it_is(step)


def test_step(model: tf_keras.Model, record: Record | None = None) -> Step:
    """The same of an evaluation."""
    record = record or _into_keras(model)

    def step(data: Any) -> dict[str, tf.Tensor]:
        inputs, label, weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        return record(label, model(inputs, training=False), weight)

    return _as_it_is(step)


class Trainable(tf_keras.Model):
    """A functional model that Keras's `fit` and `evaluate` take our steps with.

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
        return {"loss": metrics.mean_loss(label, logit, weight)}

    return record


def _as_it_is(step: Step) -> Step:
    """A step that AutoGraph leaves alone.

    It knows to leave TensorFlow's own `keras` alone, but not the package `tf_keras`: it would
    rewrite Keras itself, ten seconds before the first step, and find nothing to rewrite.
    """
    untouched: Step = tf.autograph.experimental.do_not_convert(step)
    return untouched
