"""The model in a training: its steps, which both loops execute, its metrics and its dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras

from trainer_module.loop.sums import NAMES, step_means
from trainer_module.models import Loss


class Trainable(tf_keras.Model):
    """The functional model `net` with a loss, for which Keras's `fit` executes our steps.

    Its metrics are means over all steps and replicas. Under parameter servers it has no metrics,
    because the coordinator adds up the results of the steps. The model must be created in the scope
    of its strategy.

    Args:
      net: inputs -> logits, float32 [batch, logits] or [batch, parts, logits].
      loss: the loss of each Example.
      hits: whether the predicted label of each Example is right, see `models.Architecture`.
      seed: with the number of the step, determines dropout.

    Attributes:
      wait_for_steps: a function that waits for the results of all steps so far. The loop sets it
        under parameter servers, where results arrive later.
    """

    def __init__(self, net: tf_keras.Model, loss: Loss, hits: Loss, seed: int = 0):
        super().__init__(net.input, net.output, name=net.name)
        self.loss_of_examples = loss
        self.hits_of_examples = hits
        self.random = StepRandom(seed)
        self.random.use_in(self)
        strategy = tf.distribute.get_strategy()
        by_coordinator = isinstance(strategy, tf.distribute.ParameterServerStrategy)
        running = [] if by_coordinator else [tf_keras.metrics.Mean(name) for name in NAMES]
        # Keras would add the variables of an attribute that is a metric to those of the model.
        self._running = lambda: running
        self.wait_for_steps: Callable[[], object] = lambda: None

    def compile(self, *arguments: Any, **options: Any) -> None:
        super().compile(*arguments, **options)
        # The optimizer creates this variable when it is first read. This must not be in a step.
        self.random.step = self.optimizer.iterations

    @property
    def metrics(self) -> list[tf_keras.metrics.Metric]:
        return list(self._running())

    def means(self) -> dict[str, float]:
        """Return name of a metric -> its value since the last reset, over all replicas."""
        return {name: float(value) for name, value in self.get_metrics_result().items()}

    # AutoGraph excludes TensorFlow's own `keras`, but not the package `tf_keras`. It would convert
    # Keras itself, which takes ten seconds before the first step and changes nothing.
    @tf.autograph.experimental.do_not_convert
    def train_sums(self, data: Any) -> dict[str, tf.Tensor]:
        """Execute a training step, which also updates the metrics; this is a `sums.Step`.

        The gradient is that of the mean loss of the Examples and of the losses of the layers, such
        as those of regularizers. The result contains the former only.

        Args:
          data: the inputs, the label, float32 [batch, 1], and perhaps the weight, float32 [batch].
        """
        inputs, label, weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        self.random.restart()
        with tf.GradientTape() as tape:
            sums = self._sums(label, self(inputs, training=True), weight)
            # The mean over the Examples of this replica, divided by the number of replicas, because
            # the optimizer sums the gradients over the replicas.
            loss = step_means(sums)["loss"]
            # Regularizers and `add_loss` of layers, which a model of a user's project may have.
            for penalty in self.losses:
                loss += tf.cast(penalty, tf.float32)
            loss /= self.distribute_strategy.num_replicas_in_sync
        self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
        return sums

    @tf.autograph.experimental.do_not_convert
    def test_sums(self, data: Any) -> dict[str, tf.Tensor]:
        """Execute an evaluation step, which also updates the metrics; this is a `sums.Step`.

        Args:
          data: see `train_sums`.
        """
        inputs, label, weight = tf_keras.utils.unpack_x_y_sample_weight(data)
        return self._sums(label, self(inputs, training=False), weight)

    @tf.autograph.experimental.do_not_convert
    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        return step_means(self.train_sums(data))

    @tf.autograph.experimental.do_not_convert
    def test_step(self, data: Any) -> dict[str, tf.Tensor]:
        return step_means(self.test_sums(data))

    def _sums(
        self, label: tf.Tensor, logits: tf.Tensor, weight: tf.Tensor | None
    ) -> dict[str, tf.Tensor]:
        """Return the result of a step, and update the metrics.

        The value of an Example is the mean over the parts of the model. The weight, [batch], is 0
        for padding; None: no Example is padding.
        """
        values = {
            "loss": self.loss_of_examples(label, logits),
            "accuracy": self.hits_of_examples(label, logits),
        }
        if weight is None:
            weight = tf.ones_like(label[:, 0])
        for metric in self.metrics:
            metric.update_state(values[metric.name], weight)
        examples = tf.reduce_sum(weight)
        return {name: tf.stack([tf.reduce_sum(weight * values[name]), examples]) for name in NAMES}


class StepRandom:
    """A generator of the random numbers of dropout layers, the same ones in a resumed training.

    The state of Keras's own generators is in no checkpoint. This class has the methods of
    `tf_keras.backend.RandomGenerator` that the layers of our models call.

    Args:
      seed: the seed of the training.

    Attributes:
      step: the number of the step, an integer variable []; set it before the first step.
    """

    def __init__(self, seed: int):
        self._seed = seed
        self._drawn = 0
        self.step: Any = None

    def use_in(self, model: tf_keras.Model) -> None:
        """Replace the random generators of all layers of a model.

        Keras has no public attribute for the generator of a layer.

        Args:
          model: the model, before its first step.
        """
        for layer in model._flatten_layers():
            if hasattr(layer, "_random_generator"):
                layer._random_generator = self

    def restart(self) -> None:
        """Begin the trace of a step. Each trace uses the random numbers in the same order."""
        self._drawn = 0

    def dropout(self, inputs: tf.Tensor, rate: float, noise_shape: Any = None) -> tf.Tensor:
        """Return `inputs` with dropout.

        Args:
          inputs: a tensor of a floating-point dtype.
          rate: the fraction of values that become zero.
          noise_shape: see `tf.nn.experimental.stateless_dropout`.
        """
        seed = self._next_seed()
        return tf.nn.experimental.stateless_dropout(inputs, rate, seed, noise_shape=noise_shape)

    def random_normal(
        self, shape: Any, mean: float = 0.0, stddev: float = 1.0, dtype: Any = None
    ) -> tf.Tensor:
        """Return values of a normal distribution, for Gaussian noise and dropout.

        Args:
          shape: see `tf.random.stateless_normal`.
          mean: the mean of the distribution.
          stddev: its standard deviation.
          dtype: a floating-point dtype; None: that of Keras.
        """
        dtype = dtype or tf_keras.backend.floatx()
        return tf.random.stateless_normal(shape, self._next_seed(), mean, stddev, dtype)

    def random_uniform(
        self, shape: Any, minval: float = 0.0, maxval: float | None = None, dtype: Any = None
    ) -> tf.Tensor:
        """Return values of a uniform distribution, for alpha dropout.

        Args:
          shape: see `tf.random.stateless_uniform`.
          minval: the lower end.
          maxval: the upper end; None: 1.
          dtype: a floating-point dtype; None: that of Keras.
        """
        dtype = dtype or tf_keras.backend.floatx()
        return tf.random.stateless_uniform(shape, self._next_seed(), minval, maxval, dtype)

    def _next_seed(self) -> tf.Tensor:
        """Return the seed of the next random numbers of this step and this replica, int32 [2]."""
        self._drawn += 1
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.stack([tf.cast(self.step, tf.int32), tf.cast(replica, tf.int32)])
        for number in (self._seed, self._drawn):
            seed = tf.random.experimental.stateless_fold_in(seed, number)
        return seed

    def _maybe_init(self) -> None:
        """Keras calls this when it builds a layer."""
