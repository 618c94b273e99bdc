"""The random numbers of dropout, which depend only on the seed and the number of the step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras


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
        self._drawn += 1
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.stack([tf.cast(self.step, tf.int32), tf.cast(replica, tf.int32)])
        for number in (self._seed, self._drawn):
            seed = tf.random.experimental.stateless_fold_in(seed, number)
        return tf.nn.experimental.stateless_dropout(inputs, rate, seed, noise_shape=noise_shape)

    def _maybe_init(self) -> None:
        """Keras calls this when it builds a layer."""
