"""The steps of a training and of an evaluation, which both loops take: learning rate, metrics.

All means are over real Examples. The padding of a batch to its static shape has weight 0, and is
not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tf_keras

from trainer_module.settings import Training

UNSCALED_BATCH = 1024
"""The global batch at which a learning rate applies without scaling."""
FINAL_FRACTION = 0.3
"""The learning rate at the end of the cosine, as a fraction of the highest learning rate."""

NAMES = ("loss", "accuracy")
"""The names of the metrics."""

Loss = Callable[[tf.Tensor, tf.Tensor], tf.Tensor]
"""A function of label and logits that returns the loss of each Example; see `models`."""
Step = Callable[[Any], dict[str, tf.Tensor]]
"""The computation of a replica in one step: batch -> name of a metric -> [sum over the Examples,
number of Examples], float32 [2]."""


class Trainable(tf_keras.Model):
    """The functional model `net` with a loss, for which Keras's `fit` executes our steps.

    Its metrics are means over all steps and replicas. Under parameter servers it has none, because
    there the coordinator adds up the results of the steps. The seed determines dropout.
    """

    def __init__(self, net: tf_keras.Model, loss: Loss, seed: int = 0):
        super().__init__(net.input, net.output, name=net.name)
        self.loss_of_examples = loss
        self.random = StepRandom(seed)
        for layer in self._flatten_layers():
            if hasattr(layer, "_random_generator"):
                layer._random_generator = self.random
        strategy = tf.distribute.get_strategy()
        by_coordinator = isinstance(strategy, tf.distribute.ParameterServerStrategy)
        running = [] if by_coordinator else [tf_keras.metrics.Mean(name) for name in NAMES]
        # Keras would add the variables of an attribute that is a metric to those of the model.
        self._running = lambda: running

    def compile(self, *arguments: Any, **options: Any) -> None:
        super().compile(*arguments, **options)
        # The optimizer creates this variable when it is first read, which must not be in a step.
        self.random.step = self.optimizer.iterations

    @property
    def metrics(self) -> list[tf_keras.metrics.Metric]:
        return list(self._running())

    def means(self) -> dict[str, float]:
        """Return the metrics since their reset, over all replicas."""
        return {name: float(value) for name, value in self.get_metrics_result().items()}

    # AutoGraph excludes TensorFlow's own `keras`, but not the package `tf_keras`. It would convert
    # Keras itself, which takes ten seconds before the first step and changes nothing.
    @tf.autograph.experimental.do_not_convert
    def train_sums(self, data: Any) -> dict[str, tf.Tensor]:
        """Take a training step, which also updates the metrics; a `Step`."""
        inputs, label, weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        self.random.restart()
        with tf.GradientTape() as tape:
            sums = self._sums(label, self(inputs, training=True), weight)
            # The mean over this replica's Examples, divided by the replicas; the optimizer sums
            # the gradients over them.
            loss = step_means(sums)["loss"] / self.distribute_strategy.num_replicas_in_sync
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        return sums

    @tf.autograph.experimental.do_not_convert
    def test_sums(self, data: Any) -> dict[str, tf.Tensor]:
        """Take an evaluation step, which also updates the metrics; a `Step`."""
        inputs, label, weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        return self._sums(label, self(inputs, training=False), weight)

    @tf.autograph.experimental.do_not_convert
    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        return step_means(self.train_sums(data))

    @tf.autograph.experimental.do_not_convert
    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        return step_means(self.test_sums(data))

    def _sums(
        self, label: tf.Tensor, logit: tf.Tensor, weight: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        """Return the result of a step, and update the metrics.

        The value of an Example is the mean over its logits, [batch, logits]. The weight, [batch],
        is 0 for padding; None: no Example is padding.
        """
        values = {
            "loss": self.loss_of_examples(label, logit),
            "accuracy": tf_keras.metrics.binary_accuracy(label, logit, threshold=0.0),
        }
        if weight is None:
            weight = tf.ones_like(label[:, 0])
        for metric in self.metrics:
            metric.update_state(values[metric.name], weight)
        examples = tf.reduce_sum(weight)
        return {name: tf.stack([tf.reduce_sum(weight * values[name]), examples]) for name in NAMES}


class StepRandom:
    """The random numbers of dropout, which follow from the seed and the number of the step.

    Keras's own generators have a state that no checkpoint contains. This class has the methods of
    `tf_keras.backend.RandomGenerator` that the layers of our models call.
    """

    def __init__(self, seed: int):
        self._seed = seed
        self._drawn = 0
        self.step: Any = None

    def restart(self) -> None:
        """Begin the trace of a step, which takes the random numbers in the same order each time."""
        self._drawn = 0

    def dropout(self, inputs: tf.Tensor, rate: float, noise_shape: Any = None) -> tf.Tensor:
        self._drawn += 1
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.stack([tf.cast(self.step, tf.int32), tf.cast(replica, tf.int32)])
        for number in (self._seed, self._drawn):
            seed = tf.random.experimental.stateless_fold_in(seed, number)
        return tf.nn.experimental.stateless_dropout(inputs, rate, seed, noise_shape=noise_shape)

    def _maybe_init(self) -> None:
        """Keras calls this when it builds a layer."""


def step_means(sums: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Return name of a metric -> mean over a batch, float32 []; 0 without Examples."""
    return {name: sums[name][0] / tf.maximum(sums[name][1], 1.0) for name in NAMES}


def means(totals: Mapping[str, Any]) -> dict[str, float]:
    """Return the means for `totals`, the sums of many steps."""
    return {name: float(total / max(count, 1.0)) for name, (total, count) in totals.items()}


def make_schedule(
    training: Training, own_rate: float, global_batch: int, total_steps: int
) -> WarmUp:
    """Return the learning rate over the steps of a training.

    Linear scaling is Goyal et al., "Accurate, Large Minibatch SGD" (2017), square-root scaling
    Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014). The rate
    of the model, `own_rate`, is for settings without a learning rate.
    """
    rate = training.learning_rate or own_rate
    growth = global_batch / UNSCALED_BATCH
    factor = {"linear": growth, "square_root": math.sqrt(growth), "none": 1.0}
    return WarmUp(
        rate * factor[training.learning_rate_scaling],
        warmup_steps=round(training.warmup * total_steps),
        total_steps=total_steps,
        decay=training.schedule == "cosine",
    )


class WarmUp(tf_keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises linearly to `peak` over `warmup_steps`.

    Afterwards it is constant, or with `decay` falls along half a cosine to FINAL_FRACTION of `peak`
    at `total_steps`.
    """

    def __init__(self, peak: float, warmup_steps: int, total_steps: int, decay: bool):
        super().__init__()
        self.peak, self._warmup, self._total, self._decay = peak, warmup_steps, total_steps, decay

    def __call__(self, step: Any) -> tf.Tensor:
        done = tf.cast(step, tf.float32)
        # The rate of the first step is above zero.
        rate = self.peak * tf.minimum((done + 1) / max(1, self._warmup), 1.0)
        if not self._decay:
            return rate
        progress = (done - self._warmup) / max(1, self._total - self._warmup)
        cosine = (1 + tf.cos(math.pi * tf.clip_by_value(progress, 0.0, 1.0))) / 2
        return rate * (FINAL_FRACTION + (1 - FINAL_FRACTION) * cosine)

    def get_config(self) -> dict[str, Any]:
        """Return nothing, because no optimizer with this schedule is saved by Keras."""
        return {}
