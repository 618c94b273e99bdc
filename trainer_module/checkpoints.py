"""Checkpoints: a training that was killed, or told to end, goes on where it was.

A checkpoint holds the model, the optimizer and the steps done. The input is a function of the
seed and the steps done, so a training that goes on sees the Examples that it would have seen.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from trainer_module.agreement import Agreement
from trainer_module.callbacks import StepCallback

_STEPS_BETWEEN_ASKING = 16


class CheckpointError(RuntimeError):
    """A checkpoint could not be written or read: one line that says where and why."""


class Checkpoints:
    """The checkpoints of one training; every process of a cluster calls the same methods.

    Args:
      folder: where they are, seen by all processes.
      model: compiled, so that it has its optimizer.
      chief: whether this process's checkpoints are the ones that count. Saving is collective, so
        the others save too, each in a folder of its own that nobody reads.
      name: of this process, for that folder.
    """

    def __init__(self, folder: str, model: tf_keras.Model, *, chief: bool, name: str):
        self._folder = folder
        self._mine = folder if chief else os.path.join(folder, f"scratch-{name}")
        self.steps_done = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps_done")
        self._checkpoint = tf.train.Checkpoint(
            model=model, optimizer=model.optimizer, steps_done=self.steps_done
        )
        self._manager = tf.train.CheckpointManager(self._checkpoint, self._mine, max_to_keep=2)

    def restore(self) -> int:
        """Takes up the latest checkpoint, if there is one; returns the steps done."""
        latest = tf.train.latest_checkpoint(self._folder)
        if latest is None:
            return 0
        try:
            self._checkpoint.restore(latest)
        except (tf.errors.OpError, ValueError) as error:
            raise CheckpointError(
                f"{latest}: this checkpoint cannot be read ({_first_line(error)}); remove "
                f"{self._folder} to start the training afresh"
            ) from error
        done = int(self.steps_done.numpy())
        logging.info("Going on after step %d from %s", done, latest)
        return done

    def save(self, steps_done: int) -> None:
        """Writes a checkpoint; the one before it is kept until this one is whole."""
        self.steps_done.assign(steps_done)
        try:
            self._manager.save(checkpoint_number=steps_done)
        except (tf.errors.OpError, OSError) as error:
            raise CheckpointError(
                f"{self._mine}: the checkpoint of step {steps_done} cannot be written "
                f"({_first_line(error)}); make room and run again, the last one that was "
                "written is intact"
            ) from error

    def remove(self) -> None:
        """Removes them all, once the training has come to its end; the chief does it."""
        if self._mine == self._folder and tf.io.gfile.exists(self._folder):
            tf.io.gfile.rmtree(self._folder)


class SaveRegularly(StepCallback):
    """Saves every `every` steps, after every epoch, and when the process is told to end.

    Raises:
      SystemExit: after the checkpoint that SIGTERM asked for; the code is the shell's for it.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        every: int,
        first_step: int,
        termination: Termination,
        agreement: Agreement,
    ):
        super().__init__(first_step)
        self._checkpoints = checkpoints
        self._every = every
        self._saved = self._asked = first_step
        self._termination = termination
        self._agreement = agreement
        self._steps_between_asking = _STEPS_BETWEEN_ASKING if agreement.needed else 1

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.step - self._saved >= self._every:
            self._save()
        # Processes that train in step have to save at the same step. Asking costs about as much
        # as a small step, so they do it now and then.
        if self.step - self._asked >= self._steps_between_asking:
            self._asked = self.step
            if self._agreement.any(self._termination.asked_for):
                self._save()
                logging.info("SIGTERM: saved after step %d, ending", self.step)
                raise SystemExit(128 + signal.SIGTERM)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self._save()

    def _save(self) -> None:
        if self._saved < self.step:
            self.wait_for_steps()
            self._checkpoints.save(self.step)
            self._saved = self.step


class Termination:
    """While it is entered, SIGTERM does not end the process but sets `asked_for`."""

    def __init__(self) -> None:
        self.asked_for = False
        self._handler_before: Any = None

    def __enter__(self) -> Termination:
        # Only the main thread may; elsewhere SIGTERM does what it did without us.
        if threading.current_thread() is threading.main_thread():
            self._handler_before = signal.signal(signal.SIGTERM, self._notice)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handler_before is not None:
            signal.signal(signal.SIGTERM, self._handler_before)

    def _notice(self, signum: int, frame: FrameType | None) -> None:
        self.asked_for = True


def _first_line(error: Exception) -> str:
    message = error.message if isinstance(error, tf.errors.OpError) else str(error)
    return (message.strip() or type(error).__name__).splitlines()[0]
