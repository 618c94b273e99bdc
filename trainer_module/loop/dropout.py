"""The random numbers of dropout, which follow from the seed and the number of the step."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras


class StepRandom:
    """The random numbers of a model's dropout layers, the same ones in a resumed training.

    Keras's own generators have a state that no checkpoint contains. This class has the methods of
    `tf_keras.backend.RandomGenerator` that the layers of our models call.

    Attributes:
      step: the number of the step, an integer variable []; set it before the first step.
    """

    def __init__(self, seed: int):
        self._seed = seed
        self._drawn = 0
        self.step: Any = None

    def use_in(self, model: tf_keras.Model) -> None:
        """Replace the generators of all layers of `model`, by a private attribute of Keras."""
        for layer in model._flatten_layers():
            if hasattr(layer, "_random_generator"):
                layer._random_generator = self

    def restart(self) -> None:
        """Begin the trace of a step, which takes the random numbers in the same order each time."""
        self._drawn = 0

    def dropout(self, inputs: tf.Tensor, rate: float, noise_shape: Any = None) -> tf.Tensor:
        """Return `inputs` with a fraction of zeros, see `tf.nn.experimental.stateless_dropout`."""
        self._drawn += 1
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        seed = tf.stack([tf.cast(self.step, tf.int32), tf.cast(replica, tf.int32)])
        for number in (self._seed, self._drawn):
            seed = tf.random.experimental.stateless_fold_in(seed, number)
        return tf.nn.experimental.stateless_dropout(inputs, rate, seed, noise_shape=noise_shape)

    def _maybe_init(self) -> None:
        """Keras calls this when it builds a layer."""
