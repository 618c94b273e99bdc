"""Callbacks: progress, TensorBoard, figures, checkpoints, and the reasons to end a training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from core.machine import cores, peak_rss
from core.progress import report, report_stage
from core.training_summary import Measured
from trainer_module.cluster.collective import PreemptionSync
from trainer_module.cluster.exits import ENDED_BY_SIGTERM
from trainer_module.loop.checkpoints import Checkpoints, State
from trainer_module.loop.finite import check_loss
from trainer_module.loop.sums import NAMES

MAX_POINTS = 256
"""The maximum number of points of a curve. Each epoch may end with an additional point."""


class StepCallback(tf_keras.callbacks.Callback):
    """A callback that counts the steps of a training.

    Args:
      first_step: the number of steps before a resume; 0 for a new training.

    Attributes:
      step: the number of steps done over all epochs, including those before a resume.
    """

    def __init__(self, first_step: int = 0) -> None:
        super().__init__()
        self.step = self._before_epoch = first_step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # With steps_per_execution this is called once for several steps.
        self.step = self._before_epoch + batch + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._before_epoch = self.step


class StepProgress(StepCallback):
    """A callback that reports steps and loss of a training, at least twenty times an epoch.

    Args:
      steps_per_epoch: the number of steps in an epoch.
      epochs: the number of epochs.
      first_step: see `StepCallback`.
    """

    def __init__(self, steps_per_epoch: int, epochs: int, first_step: int = 0):
        super().__init__(first_step)
        self._total = steps_per_epoch * epochs
        self._every = max(1, steps_per_epoch // 20)
        self._reported = first_step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.step - self._reported >= self._every or self.step == self._total:
            self._reported = self.step
            report("steps", self.step, self._total, loss=float(logs["loss"]) if logs else None)

    def on_test_begin(self, logs: Any = None) -> None:
        report_stage("evaluating the epoch")


class TensorBoard(tf_keras.callbacks.TensorBoard):
    """Keras's callback, without its summaries of each batch, which take 0.3 ms a step."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch)


class StopOnNonFiniteLoss(StepCallback):
    """A callback that raises NotFiniteError when a loss is NaN or infinite, before a checkpoint.

    Keras's TerminateOnNaN also ends the training, but reports a success. Under
    ParameterServerStrategy the loss belongs to the last step whose result has arrived, which is a
    few steps earlier. A loss is computed before the step updates the weights. The weights after the
    last update are checked by the eval loss and by `Checkpoints.save`.
    """

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        check_loss("loss", float(logs["loss"]), f"at step {self.step}")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        check_loss("loss", float(logs["loss"]), f"at step {self.step}")
        check_loss("eval loss", float(logs["val_loss"]), f"after step {self.step}")


class SkippedUpdates(StepCallback):
    """A callback that counts the steps whose update Keras skips under float16.

    Keras multiplies the loss by a scale. If a gradient overflows, it skips the update and halves
    the scale, which often happens in the first steps. The loss and the number of steps do not show
    this. This callback must precede `SaveRegularly`, because checkpoints contain the number.

    Args:
      first_step: see `StepCallback`.
      state: the state of the training, whose `skipped_updates` is updated.
    """

    def __init__(self, first_step: int, state: State):
        super().__init__(first_step)
        self._state = state

    def on_train_begin(self, logs: Any = None) -> None:
        self._scale, self._good_steps = self._read()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        expected = self._good_steps - self.step
        super().on_train_batch_end(batch, logs)
        expected += self.step
        before = self._scale
        self._scale, self._good_steps = self._read()
        # The number of good steps also begins again when the scale grows, after 2,000 of them.
        if self._good_steps != expected and self._scale <= before:
            # A scale of 1 is not halved.
            self._state.skipped_updates += max(1, round(math.log2(before / self._scale)))

    def _read(self) -> tuple[float, int]:
        """Return the scale of the loss, and the number of updates since its last change."""
        optimizer = self.model.optimizer
        # A variable of several replicas is no number, but can be converted to a tensor.
        return float(optimizer.loss_scale), int(tf.convert_to_tensor(optimizer.dynamic_counter))


class Measurements(StepCallback):
    """A callback that measures the time and the CPU time of training steps, without evaluations.

    Args:
      examples: the number of Examples in the train split, each of which an epoch reads once.
      first_step: see `StepCallback`.
      so_far: the measurements of the steps before a resume, from a checkpoint. This object is
        updated.
    """

    def __init__(self, examples: int, first_step: int, so_far: dict[str, Any]):
        super().__init__(first_step)
        self._examples = examples
        self._so_far = so_far
        self._seconds_per_epoch: list[float] = so_far.setdefault("seconds_per_epoch", [])
        so_far.setdefault("cpu_seconds", 0.0)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        # A resumed training is in an epoch that already has an entry.
        if epoch == len(self._seconds_per_epoch):
            self._seconds_per_epoch.append(0.0)
        self._since, self._cpu_since = time.perf_counter(), time.process_time()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        self._measure()

    def on_test_begin(self, logs: Any = None) -> None:
        # Under parameter servers the last steps of an epoch end after the last call of
        # `on_train_batch_end`.
        self._measure()

    def summary(self) -> Measured:
        """Return the measurements of all epochs so far. Call this after a complete epoch."""
        seconds, cpus = sum(self._seconds_per_epoch), cores()
        # The product of steps and batch size would also count padding and Examples that short and
        # empty batches lack.
        examples = self._examples * len(self._seconds_per_epoch)
        return Measured(
            seconds_per_epoch=[round(epoch, 3) for epoch in self._seconds_per_epoch],
            steps=self.step,
            step_seconds=seconds / max(1, self.step),
            examples_per_second=examples / max(1e-9, seconds),
            cpu_utilisation=self._so_far["cpu_seconds"] / max(1e-9, seconds * cpus),
            cpus=cpus,
            peak_rss_bytes=peak_rss(),
        )

    def _measure(self) -> None:
        now, cpu_now = time.perf_counter(), time.process_time()
        self._seconds_per_epoch[-1] += now - self._since
        self._so_far["cpu_seconds"] += cpu_now - self._cpu_since
        self._since, self._cpu_since = now, cpu_now


class TrainingCurve(StepCallback):
    """A callback that records the loss and the accuracy of the training steps.

    A point represents several steps: it has the number of the last one, how many they are, and the
    mean loss and accuracy of their Examples. The values are those of the first replica of this
    process, because a sum over all replicas would take longer than a small step. Under parameter
    servers they are those of all replicas.

    Args:
      first_step: see `StepCallback`.
      total_steps: the number of steps over all epochs, which MAX_POINTS points represent.
      points: the points of the steps before a resume. New points are appended.
      examples_of_step: (number of a step, from 0) -> the number of Examples of the first replica in
        this step. It may be 0 in the last steps of an epoch, for which the logs contain zeros.
        None: the logs are not those of the step, and `add_result` is called in their place.
    """

    def __init__(
        self,
        first_step: int,
        total_steps: int,
        points: list[dict[str, float]],
        examples_of_step: Callable[[int], int] | None,
    ):
        super().__init__(first_step)
        self._points, self._examples_of_step = points, examples_of_step
        self._size = -(-total_steps // MAX_POINTS)
        self._added = first_step
        self._reset()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        before = self.step
        super().on_train_batch_end(batch, logs)
        if self._examples_of_step is not None:
            steps = self.step - before
            # With steps_per_execution the logs are those of the last step; it represents them all.
            examples = self._examples_of_step(self.step - 1) * steps
            self._add(steps, examples, {name: float(logs[name]) * examples for name in NAMES})

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self._added > self._since:
            self._add_point()

    def add_result(self, sums: Mapping[str, Any]) -> None:
        """Add the result of the next step, in the order of the steps.

        Args:
          sums: the result of a `sums.Step`.
        """
        self._add(1, int(sums[NAMES[0]][1]), {name: float(sums[name][0]) for name in NAMES})

    def _add(self, steps: int, examples: int, sums: Mapping[str, float]) -> None:
        self._added += steps
        self._examples += examples
        for name in NAMES:
            self._sums[name] += sums[name]
        if self._added - self._since >= self._size:
            self._add_point()

    def _add_point(self) -> None:
        steps = self._added - self._since
        if self._examples:
            means = {name: total / self._examples for name, total in self._sums.items()}
            self._points.append({"step": self._added, "steps": steps, **means})
        elif self._points:  # without a point, the replica has had no Examples so far
            last = self._points[-1]
            last["step"], last["steps"] = self._added, last["steps"] + steps
        self._reset()

    def _reset(self) -> None:
        self._since = self._added
        self._sums = dict.fromkeys(NAMES, 0.0)
        self._examples = 0


class EarlyStopping(tf_keras.callbacks.Callback):
    """A callback that ends the training after `patience` epochs without a lower eval loss.

    Keras's EarlyStopping loses its state when the process ends. This callback must precede
    `SaveRegularly`, because checkpoints contain its state. It raises CheckpointError if the best
    weights cannot be written.

    Args:
      patience: the number of epochs without a lower eval loss.
      checkpoints: the checkpoints, which also store the best weights.
    """

    def __init__(self, patience: int, checkpoints: Checkpoints):
        super().__init__()
        self._patience = patience
        self._checkpoints = checkpoints

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        state = self._checkpoints.state
        if (
            state.best_epoch is None
            or logs["val_loss"] < state.history[state.best_epoch]["val_loss"]
        ):
            state.best_epoch = epoch
            self._checkpoints.save_best()
        elif epoch - state.best_epoch >= self._patience:
            logging.info("Early stopping: the best epoch was %d", state.best_epoch + 1)
            self.model.stop_training = True


class SaveRegularly(StepCallback):
    """A callback that saves checkpoints regularly, and at SIGTERM before it ends the training.

    A checkpoint is saved every `every` steps and after every epoch. An epoch counts as done after
    its evaluation. Therefore no checkpoint is saved between its last step and the end of the
    evaluation. After a SIGTERM the callback saves and raises SystemExit. The errors of
    `Checkpoints.save` pass through.

    Args:
      checkpoints: the checkpoints.
      every: the number of steps between two checkpoints.
      steps_per_epoch: the number of steps in an epoch.
      first_step: see `StepCallback`.
      sync: the votes of all processes about the end of the training.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        every: int,
        steps_per_epoch: int,
        first_step: int,
        sync: PreemptionSync,
    ):
        super().__init__(first_step)
        self._checkpoints, self._every, self._sync = checkpoints, every, sync
        self._steps_per_epoch = steps_per_epoch
        self._saved = first_step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        ends = self._sync.after_step()
        if self.step % self._steps_per_epoch == 0:
            return
        if ends or self.step - self._saved >= self._every:
            self._save()
        if ends:
            self._end()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        state = self._checkpoints.state
        state.stopped = bool(self.model.stop_training)
        state.history.append({name: float(value) for name, value in (logs or {}).items()})
        self._save()
        # After the vote of the last epoch, SIGTERM ends the process without a further checkpoint.
        if self._sync.now():
            self._end()

    def _save(self) -> None:
        # An op of this thread may deadlock with the steps that workers still compute. Their results
        # become points of the curve, which is a part of the checkpoint.
        self.model.wait_for_steps()
        self._checkpoints.save(self.step)
        self._saved = self.step

    def _end(self) -> None:
        logging.info("SIGTERM: saved after step %d, ending", self.step)
        self._sync.wait_for_all()
        raise SystemExit(ENDED_BY_SIGTERM)
