"""Callbacks that count steps: progress, TensorBoard, and a stop at a loss that is not finite."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from core.progress import report
from trainer_module.settings import Training


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


def _best_effort(hook: Callable[..., None]) -> Callable[..., None]:
    """Return a hook of `TensorBoard` that does nothing after the first error of any hook."""

    @functools.wraps(hook)
    def attempt(self: TensorBoard, *arguments: Any, **named: Any) -> None:
        if self.failed:
            return
        try:
            hook(self, *arguments, **named)
        except Exception as error:
            self.failed = True
            logging.warning("TensorBoard is disabled after an error: %s", error)

    return attempt


class TensorBoard(StepCallback):
    """A callback that writes the metrics of each epoch, and the profile of some steps.

    A full disk, or a profiler that cannot start, must not end a training, as with Keras's
    TensorBoard. Keras's also profiles twice after a resume within an epoch, because it counts the
    steps of each call of `fit`. Here `profile_steps` are counted from `first_step`.
    """

    def __init__(self, folder: str, training: Training, first_step: int = 0):
        super().__init__(first_step)
        self.failed = False
        self._folder = folder
        self._at_once = training.steps_per_execution
        self._profile = [first_step + step for step in training.profile_steps or ()]
        self._profiles = False
        self._writers: dict[str, Any] = {}

    @_best_effort
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._profile and not self._profiles and self.step + self._at_once >= self._profile[0]:
            self._profiles = True
            tf.profiler.experimental.start(self._folder)

    @_best_effort
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self._profiles and self.step >= self._profile[1]:
            self.on_train_end()

    @_best_effort
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        for name, value in logs.items():
            split = "validation" if name.startswith("val_") else "train"
            if split not in self._writers:
                path = os.path.join(self._folder, split)
                self._writers[split] = tf.summary.create_file_writer(path)
            with self._writers[split].as_default():
                tf.summary.scalar(f"epoch_{name.removeprefix('val_')}", value, step=epoch)
            self._writers[split].flush()

    @_best_effort
    def on_train_end(self, logs: Any = None) -> None:
        if self._profiles:
            self._profiles, self._profile = False, []
            tf.profiler.experimental.stop()


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
