"""Checkpoints: a training that was killed, or told to end, goes on where it was.

A checkpoint holds the model, the optimizer, the steps done and what the callbacks know. The input
is a function of the seed and the steps done, so a training that goes on sees the Examples that it
would have seen.
"""

from __future__ import annotations

import os
import re
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from trainer_module.loop.callbacks import StepCallback
from trainer_module.loop.state import State
from trainer_module.loop.termination import EXIT_CODE, Vote

LIST_FILE = "checkpoint"
"""In a folder of checkpoints: TensorFlow's list of them."""
READ_ERRORS = (tf.errors.OpError, ValueError, IndexError)
"""What TensorFlow raises for a checkpoint that cannot be read; the last for one that is cut off."""
_BEST = "best-"


class CheckpointError(RuntimeError):
    """A checkpoint could not be written or read: one line that says where and why."""


def latest_checkpoint(folder: str) -> str | None:
    """Return the path of the latest checkpoint in `folder`; None: none was ever written there.

    Raises:
      CheckpointError: one was written, but it is not there, or the list of them is broken.
        TensorFlow would only log that, and the training would start afresh.
    """
    listed = os.path.join(folder, LIST_FILE)
    try:
        latest: str | None = tf.train.latest_checkpoint(folder)
    except ValueError as error:
        raise unreadable(listed, error) from error
    if latest is None and tf.io.gfile.exists(listed):
        raise unreadable(listed, FileNotFoundError("it names no checkpoint that is there"))
    return latest


def unreadable(path: str, error: Exception) -> CheckpointError:
    """Return the error for a checkpoint at `path` which `error` was raised about."""
    return CheckpointError(
        f"{path}: this checkpoint cannot be read ({_first_line(error)}); remove "
        f"{os.path.dirname(path)} to start the training afresh"
    )


def remove_folder(folder: str) -> None:
    """Remove a folder of checkpoints; a kill meanwhile leaves none behind that seem to be there."""
    listed = os.path.join(folder, LIST_FILE)
    if tf.io.gfile.exists(listed):
        tf.io.gfile.remove(listed)
    tf.io.gfile.rmtree(folder)


class Checkpoints:
    """The checkpoints of one training; every process of a cluster calls the same methods.

    Args:
      folder: where they are, seen by all processes.
      model: compiled, so that it has its optimizer.
      chief: whether this process's checkpoints are the ones that count. Saving is collective, so
        the others save too, each in a folder of its own that nobody reads.
      name: of this process, for that folder.

    Raises:
      CheckpointError: the list of the checkpoints that were written before is broken.
    """

    def __init__(self, folder: str, model: tf_keras.Model, *, chief: bool, name: str):
        self._folder = folder
        self._mine = folder if chief else os.path.join(folder, f"scratch-{name}")
        self._model = model
        self.state = State()
        self.steps_done = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps_done")
        self._checkpoint = tf.train.Checkpoint(
            model=model, optimizer=model.optimizer, steps_done=self.steps_done, state=self.state
        )
        try:
            self._manager = tf.train.CheckpointManager(self._checkpoint, self._mine, max_to_keep=2)
        except ValueError as error:
            raise unreadable(os.path.join(self._mine, LIST_FILE), error) from error

    def restore(self) -> int:
        """Takes up the latest checkpoint, if there is one; returns the steps done."""
        latest = latest_checkpoint(self._folder)
        if latest is None:
            return 0
        try:
            self._checkpoint.restore(latest)
        except READ_ERRORS as error:
            raise unreadable(latest, error) from error
        done = int(self.steps_done.numpy())
        logging.info("Going on after step %d from %s", done, latest)
        return done

    def save(self, steps_done: int) -> None:
        """Writes a checkpoint; the one before it is kept until this one is whole."""
        self.steps_done.assign(steps_done)
        try:
            # Numbered one after the other: one step may be saved before and after an evaluation.
            path = self._manager.save()
        except (tf.errors.OpError, OSError) as error:
            raise self._unwritable(f"the checkpoint of step {steps_done}", error) from error
        logging.info("Checkpoint after step %d: %s", steps_done, path)
        self._remove_old_best()

    def save_best(self) -> None:
        """Keeps the weights as they are now as those of `state.best_epoch`.

        The best ones before stay until a checkpoint is written that knows of these.
        """
        try:
            self._weights().write(os.path.join(self._mine, self._best_name()))
        except (tf.errors.OpError, OSError) as error:
            raise self._unwritable("the best weights", error) from error

    def restore_best(self) -> None:
        """Gives the model the weights of `state.best_epoch`, if there is one."""
        if self.state.best_epoch is None:
            return
        path = os.path.join(self._folder, self._best_name())
        try:
            self._weights().read(path).expect_partial()
        except READ_ERRORS as error:
            raise unreadable(path, error) from error
        logging.info("The best weights are those of epoch %d", self.state.best_epoch + 1)

    def remove(self) -> None:
        """Removes them all, once the training has come to its end; the chief does it."""
        if self._mine == self._folder and tf.io.gfile.exists(self._folder):
            remove_folder(self._folder)

    def _weights(self) -> tf.train.Checkpoint:
        return tf.train.Checkpoint(weights=self._model.variables)

    def _best_name(self) -> str:
        return f"{_BEST}{self.state.best_epoch}"

    def _remove_old_best(self) -> None:
        best = re.compile(rf"{_BEST}(\d+)\.")
        for name in tf.io.gfile.listdir(self._mine):
            found = best.match(name)
            if found and int(found[1]) != self.state.best_epoch:
                tf.io.gfile.remove(os.path.join(self._mine, name))

    def _unwritable(self, what: str, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{self._mine}: {what} cannot be written ({_first_line(error)}); make room and run "
            "again, the last checkpoint that was written is intact"
        )


class SaveRegularly(StepCallback):
    """Saves every `every` steps, after every epoch, and when the process is told to end.

    Raises:
      SystemExit: after the checkpoint that SIGTERM asked for; the code is the shell's for it.
    """

    def __init__(self, checkpoints: Checkpoints, every: int, first_step: int, vote: Vote):
        super().__init__(first_step)
        self._checkpoints = checkpoints
        self._every = every
        self._vote = vote
        self._saved = (first_step, *self._progress())

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.step - self._saved[0] >= self._every:
            self._save()
        if self._vote.after_step():
            self._save_and_end()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._vote.after_step():
            self._save_and_end()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        state = self._checkpoints.state
        state.epochs = epoch + 1
        state.stopped = bool(self.model.stop_training)
        state.metrics = {name: float(value) for name, value in (logs or {}).items()}
        self._save()
        # What comes after the last epoch saves nothing, and ends at once when it is told to.
        if self._vote.now():
            self._save_and_end()

    def _save_and_end(self) -> None:
        self._save()
        logging.info("SIGTERM: saved after step %d, ending", self.step)
        raise SystemExit(EXIT_CODE)

    def _save(self) -> None:
        now = (self.step, *self._progress())
        if self._saved != now:
            self.wait_for_steps()
            self._checkpoints.save(self.step)
            self._saved = now

    def _progress(self) -> tuple[int, bool]:
        """What an evaluation changes in the state."""
        state = self._checkpoints.state
        return state.epochs, bool(state.trained)


def _first_line(error: Exception) -> str:
    message = error.message if isinstance(error, tf.errors.OpError) else str(error)
    return (message.strip() or type(error).__name__).splitlines()[0]
