"""TensorFlow's profiler over some steps of a training."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainer_module.loop.callbacks import StepCallback


class Profiler(StepCallback):
    """A callback that records the steps `first` to `last`, counted from 1 over all epochs.

    If one call of the compiled function executes several steps, whole calls are recorded. The
    profiler of Keras's TensorBoard callback counts calls instead of steps, and starts at 0 after a
    resume.

    Args:
      log_dir: the log folder of TensorBoard.
      steps: the first and the last step to record.
      steps_per_execution: steps that one call executes.
      first_step: steps done before a resume.
    """

    def __init__(
        self, log_dir: str, steps: tuple[int, int], steps_per_execution: int, first_step: int
    ):
        super().__init__(first_step)
        self._log_dir = log_dir
        self._first, self._last = steps
        self._at_once = steps_per_execution
        self._records = False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if not self._records and self._first - self._at_once <= self.step < self._last:
            tf.profiler.experimental.start(self._log_dir)
            self._records = True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.step >= self._last:
            self._end()

    def on_train_end(self, logs: Any = None) -> None:
        self._end()

    def _end(self) -> None:
        if self._records:
            self._records = False
            tf.profiler.experimental.stop()
