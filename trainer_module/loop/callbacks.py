"""Callbacks: progress, TensorBoard, and a stop at a loss that is not finite."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf
import tf_keras

from core.progress import report


class StepCallback(tf_keras.callbacks.Callback):
    """A callback that counts steps and whose batch hooks are called under every strategy.

    Attributes:
      step: steps done over all epochs, including the steps before a resume.
    """

    def __init__(self, first_step: int = 0) -> None:
        super().__init__()
        self.step = self._before_epoch = first_step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # With steps_per_execution this is called once for several steps.
        self.step = self._before_epoch + batch + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._before_epoch = self.step

    def wait_for_steps(self) -> None:
        """Block until no step is running, so that this thread can run TensorFlow ops.

        Under ParameterServerStrategy the hooks are called while workers compute, and an op of this
        thread may then deadlock with them.
        """
        strategy = self.model.distribute_strategy
        if isinstance(strategy, tf.distribute.ParameterServerStrategy):
            tf.distribute.coordinator.ClusterCoordinator(strategy).join()


class StepProgress(StepCallback):
    """A callback that reports the steps done over all epochs, at least twenty times an epoch."""

    def __init__(self, steps_per_epoch: int, epochs: int, first_step: int = 0):
        super().__init__(first_step)
        self._total = steps_per_epoch * epochs
        self._every = max(1, steps_per_epoch // 20)
        self._reported = first_step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.step - self._reported >= self._every or self.step == self._total:
            self._reported = self.step
            report("steps", self.step, self._total)


class TensorBoard(tf_keras.callbacks.TensorBoard):
    """Keras's callback, without its summaries of each batch, which take 0.3 ms a step."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch)


class NonFiniteLossError(ValueError):
    """A loss that is NaN or infinite; the message is one line and names the step."""


class StopOnNonFiniteLoss(StepCallback):
    """A callback that fails when the loss is NaN or infinite, before a checkpoint is written.

    Keras's TerminateOnNaN also ends the training, but reports a success. Under
    ParameterServerStrategy the loss is that of the last step that is known to be done, a few steps
    earlier.
    """

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        self._check(logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self._check(logs)

    def _check(self, logs: Any) -> None:
        # After such a loss the weights are not finite either.
        loss = float(logs["loss"]) if isinstance(logs, dict) and "loss" in logs else 0.0
        if math.isfinite(loss):
            return
        raise NonFiniteLossError(
            f"the loss is {loss} at step {self.step}, nothing was exported; a smaller "
            "training.learning_rate may help"
        )
