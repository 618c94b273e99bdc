"""The learning rate over the steps of a training: scaling, warm-up and decay."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf
import tf_keras

from trainer_module.settings import Training

UNSCALED_BATCH = 1024
"""The global batch at which a learning rate applies without scaling."""
FINAL_FRACTION = 0.3
"""The learning rate at the end of the cosine, as a fraction of the highest learning rate."""


def make_schedule(
    training: Training, own_rate: float, global_batch: int, total_steps: int
) -> WarmUp:
    """Return the learning rate over the steps of a training.

    Linear scaling follows Goyal et al., "Accurate, Large Minibatch SGD" (2017). Square-root scaling
    follows Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014).

    Args:
      training: the settings.
      own_rate: the default learning rate of the model, used if the settings have none.
      global_batch: number of Examples in a step, over all replicas.
      total_steps: number of steps over all epochs.
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


# The first rate of Keras's CosineDecay is 0, or its cosine begins a step earlier: of 20 steps with
# a warm-up of 4, the rates differ from these by up to 7 % of the peak.
class WarmUp(tf_keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises linearly, and then is constant or falls along half a cosine.

    Args:
      peak: the learning rate after the warm-up.
      warmup_steps: the number of steps in which it rises.
      total_steps: the number of steps over all epochs.
      decay: whether it falls after the warm-up, to FINAL_FRACTION of `peak` at `total_steps`.
    """

    def __init__(self, peak: float, warmup_steps: int, total_steps: int, decay: bool):
        super().__init__()
        self.peak, self._warmup, self._total, self._decay = peak, warmup_steps, total_steps, decay

    def __call__(self, step: Any) -> tf.Tensor:
        """Return the rate of a step, float32 []; steps are numbered from 0."""
        done = tf.cast(step, tf.float32)
        # The rate of the first step is above zero.
        rate = self.peak * tf.minimum((done + 1) / max(1, self._warmup), 1.0)
        if not self._decay:
            return rate
        progress = (done - self._warmup) / max(1, self._total - self._warmup)
        cosine = (1 + tf.cos(math.pi * tf.clip_by_value(progress, 0.0, 1.0))) / 2
        return rate * (FINAL_FRACTION + (1 - FINAL_FRACTION) * cosine)

    def get_config(self) -> dict[str, Any]:
        """Return an empty mapping; Keras never saves an optimizer with this schedule."""
        return {}
