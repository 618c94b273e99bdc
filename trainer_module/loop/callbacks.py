"""What happens beside the training steps: progress, a stop at a loss that is no number."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from core.progress import report
from trainer_module.loop.state import State


class StepCallback(tf_keras.callbacks.Callback):
    """A callback with batch hooks that are called under every strategy, and that knows the step.

    Attributes:
      step: steps done over all epochs, those before this training included.
    """

    def __init__(self, first_step: int = 0) -> None:
        super().__init__()
        self.step = self._before_epoch = first_step
        # Keras refuses batch hooks under ParameterServerStrategy unless they can do without logs
        # that are numbers already: there they are still with the worker.
        self._supports_tf_logs = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # With steps_per_execution this is called once for several steps.
        self.step = self._before_epoch + batch + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._before_epoch = self.step

    def wait_for_steps(self) -> None:
        """Returns when no step is under way, so that TensorFlow ops can be run.

        Under ParameterServerStrategy the hooks are called while workers compute, and an op of this
        thread may then wait for them for ever.
        """
        strategy = self.model.distribute_strategy
        if isinstance(strategy, tf.distribute.ParameterServerStrategy):
            tf.distribute.coordinator.ClusterCoordinator(strategy).join()


class StepProgress(StepCallback):
    """Reports the steps done over all epochs, twenty times an epoch or more often."""

    def __init__(self, steps_per_epoch: int, epochs: int, first_step: int = 0):
        super().__init__(first_step)
        self._total = steps_per_epoch * epochs
        self._every = max(1, steps_per_epoch // 20)
        self._said = first_step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.step - self._said >= self._every or self.step == self._total:
            self._said = self.step
            report("steps", self.step, self._total)


def harmless(callback: tf_keras.callbacks.Callback) -> tf_keras.callbacks.Callback:
    """The same callback, which from its first error on logs it and does nothing more.

    For what only reports: a full disk or a profiler that cannot start must not end a training.
    """
    failed = False

    def guarded(hook: Callable[..., Any]) -> Callable[..., Any]:
        # With what Keras marks the hooks with that do nothing.
        @functools.wraps(hook)
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal failed
            if failed:
                return None
            try:
                return hook(*arguments, **named)
            except Exception as error:
                failed = True
                logging.warning("%s does nothing from now on: %s", type(callback).__name__, error)
                return None

        return call

    for name in dir(tf_keras.callbacks.Callback):
        if name.startswith("on_") or name == "set_model":
            setattr(callback, name, guarded(getattr(callback, name)))
    return callback


class EpochMetrics(tf_keras.callbacks.Callback):
    """Puts the metrics of all steps and replicas into the logs of an epoch.

    A step's logs have its loss in this process alone: to add metrics up over all processes takes
    them longer than a small step. To come before the callbacks that read an epoch's logs.

    Args:
      state: of the checkpoints. It keeps the metrics of the steps while the epoch is evaluated,
        for a training that was broken off meanwhile and begins with that evaluation.
    """

    def __init__(self, state: State):
        super().__init__()
        self._state = state
        self._trains = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._trains = True
        self._state.trained = {}

    def on_test_begin(self, logs: Any = None) -> None:
        # The evaluation is about to begin with new ones.
        if self._trains:
            self._state.trained = numbers(self.model)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        evaluated = numbers(self.model)
        logs.update(
            self._state.trained | {f"val_{name}": value for name, value in evaluated.items()}
        )


def numbers(model: tf_keras.Model) -> dict[str, float]:
    """The model's metrics as they are now, over all replicas."""
    return {name: float(value) for name, value in model.get_metrics_result().items()}


class LossIsNoNumber(ValueError):
    """The loss became NaN or infinite: one line that says at which step."""


class StopAtNoNumber(StepCallback):
    """Ends the training when the loss is NaN or infinite, before anything is saved.

    Keras's TerminateOnNaN ends it too, but as if it had succeeded. Under ParameterServerStrategy
    the loss is that of the last step that is known to be done, a few steps before.
    """

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        self._check(logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self._check(logs)

    def _check(self, logs: Any) -> None:
        # A loss that is no number leaves weights behind that are none.
        loss = float(logs["loss"]) if isinstance(logs, dict) and "loss" in logs else 0.0
        if math.isfinite(loss):
            return
        raise LossIsNoNumber(
            f"the loss is {loss} at step {self.step}, nothing was exported; a smaller "
            "training.learning_rate may help"
        )
