"""Checkpoints, from which a training resumes after it was killed or ended by SIGTERM.

The input depends only on the seed and the number of steps done, so a resumed training reads the
same Examples as an uninterrupted one.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from core.errors import cause
from trainer_module.loop.finite import check_weights, not_finite

LIST_FILE = "checkpoint"
"""The file in a folder of checkpoints with TensorFlow's list of them."""
READ_ERRORS = (tf.errors.OpError, ValueError, IndexError)
"""TensorFlow's errors for an unreadable checkpoint; a truncated one raises IndexError."""
BEST = "best-"
"""The beginning of the names of the files with the best weights."""


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written or read; the message is one line with path and reason."""


@dataclass(eq=False)
class State(tf.train.experimental.PythonState):
    """The Python values of a training, stored as JSON in every checkpoint.

    Attributes:
      global_batch: number of Examples in a step; 0 before the first checkpoint.
      stopped: whether early stopping has ended the training.
      best_epoch: the epoch, from 0, with the lowest eval loss; None without early stopping.
      usage: the measurements of `Measurements` so far.
      curve: the points of `TrainingCurve` so far.
      history: the metrics of each epoch that has been trained and evaluated.
      skipped_warm_start: the reason why the training does not continue from the weights of the base
        model; empty if it does, or without one.
      skipped_updates: the number of steps whose update was skipped, see `SkippedUpdates`.
    """

    global_batch: int = 0
    stopped: bool = False
    best_epoch: int | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    curve: list[dict[str, float]] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    skipped_warm_start: str = ""
    skipped_updates: int = 0

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the best epoch, or without early stopping of the last one."""
        return self.history[-1 if self.best_epoch is None else self.best_epoch]

    def serialize(self) -> str:
        return json.dumps(asdict(self))

    def deserialize(self, string_value: bytes) -> None:
        self.__dict__.update(json.loads(string_value))


def latest_checkpoint(folder: str) -> str | None:
    """Return the path of the latest checkpoint in a folder; None if none was ever written there.

    Args:
      folder: the folder of checkpoints, local or remote.

    Raises:
      CheckpointError: the latest checkpoint is missing, or the list of checkpoints is damaged.
        TensorFlow would only log this, and the training would start from the beginning.
    """  # noqa: DOC501
    listed = os.path.join(folder, LIST_FILE)
    try:
        state = tf.train.get_checkpoint_state(folder)
    except ValueError as error:
        raise unreadable(listed, error) from error
    if state is not None and tf.io.gfile.exists(f"{state.model_checkpoint_path}.index"):
        return str(state.model_checkpoint_path)
    if tf.io.gfile.exists(listed):
        raise unreadable(listed, FileNotFoundError("no checkpoint in this list exists"))
    return None


def unreadable(path: str, error: Exception) -> CheckpointError:
    """Return the CheckpointError for a checkpoint that cannot be read.

    Args:
      path: the path of the checkpoint or of the list of checkpoints.
      error: the error that reading it raised.
    """
    return CheckpointError(
        f"{path}: this checkpoint cannot be read ({cause(error)}); remove "
        f"{os.path.dirname(path)} to start the training from the beginning"
    )


def remove_folder(folder: str) -> None:
    """Remove a folder of checkpoints.

    The list is removed first, so that the folder counts as empty if the removal is interrupted.

    Args:
      folder: the folder, local or remote.

    Raises:
      tensorflow.errors.OpError: a file cannot be removed.
    """
    listed = os.path.join(folder, LIST_FILE)
    if tf.io.gfile.exists(listed):
        tf.io.gfile.remove(listed)
    tf.io.gfile.rmtree(folder)


class Checkpoints:
    """The checkpoints of one training; every process of a cluster calls the same methods.

    Saving is a collective operation. So the processes other than the chief save too, each to a
    scratch folder that is never read.

    Args:
      folder: the existing folder of the chief, local or remote.
      model: the compiled model.
      chief: whether this process is the chief.
      name: the name of the scratch folder of another process.

    Raises:
      CheckpointError: the scratch folder cannot be written, or the list of checkpoints is damaged.

    Attributes:
      state: the Python values of the training.
      steps_done: the number of steps at the last checkpoint, int64 [].
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
            if not chief:
                tf.io.gfile.makedirs(self._mine)
            self._manager = tf.train.CheckpointManager(self._checkpoint, self._mine, max_to_keep=2)
        except tf.errors.OpError as error:
            raise self._unwritable("its scratch folder", error) from error
        except ValueError as error:
            raise unreadable(os.path.join(self._mine, LIST_FILE), error) from error

    def restore(self, global_batch: int) -> int:
        """Restore the latest checkpoint if there is one, and return the number of steps done.

        Args:
          global_batch: number of Examples in a step, over all replicas.

        Raises:
          CheckpointError: the checkpoint cannot be read, has weights that are not finite, or was
            written with another number of Examples in a step.
        """  # noqa: DOC501
        latest = latest_checkpoint(self._folder)
        if latest is not None:
            try:
                restored = self._checkpoint.restore(latest)
                restored.assert_existing_objects_matched()
            except (AssertionError, *READ_ERRORS) as error:
                raise unreadable(latest, error) from error
            # With another global batch, the steps done would be another part of an epoch.
            if self.state.global_batch != global_batch:
                raise CheckpointError(
                    f"{latest}: this checkpoint was written with {self.state.global_batch} "
                    f"Examples a step, now {global_batch}; train on as many devices as before, or "
                    f"remove {self._folder} to start the training from the beginning"
                )
            name = not_finite(self._model.variables)
            if name is not None:
                raise CheckpointError(
                    f"{latest}: the weights {name} of this checkpoint are not finite; remove "
                    f"{self._folder} to start the training from the beginning"
                )
            logging.info("Resuming after step %d from %s", self.steps_done.numpy(), latest)
        self.state.global_batch = global_batch
        return int(self.steps_done.numpy())

    def save(self, steps_done: int) -> None:
        """Write a checkpoint; the previous one is kept until this one is complete.

        Args:
          steps_done: the number of steps over all epochs.

        Raises:
          NotFiniteError: a weight is NaN or infinite. A training that resumed from such a
            checkpoint would fail again.
          CheckpointError: the checkpoint cannot be written.
        """
        check_weights(self._model, steps_done)
        self.steps_done.assign(steps_done)
        try:
            path = self._manager.save()
        except (tf.errors.OpError, OSError) as error:
            raise self._unwritable(f"the checkpoint of step {steps_done}", error) from error
        logging.info("Checkpoint after step %d: %s", steps_done, path)
        for name in tf.io.gfile.listdir(self._mine):
            if name.startswith(BEST) and not name.startswith(f"{self._best_name()}."):
                tf.io.gfile.remove(os.path.join(self._mine, name))

    def save_best(self) -> None:
        """Save the current weights as those of `state.best_epoch`.

        The previous best weights are kept until the next checkpoint, whose state has the new epoch.

        Raises:
          CheckpointError: the weights cannot be written.
        """
        try:
            self._weights().write(os.path.join(self._mine, self._best_name()))
        except (tf.errors.OpError, OSError) as error:
            raise self._unwritable("the best weights", error) from error

    def restore_best(self) -> None:
        """Set the model's weights to those of `state.best_epoch`, if there is one.

        Raises:
          CheckpointError: the weights cannot be read.
        """  # noqa: DOC501
        if self.state.best_epoch is None:
            return
        path = os.path.join(self._folder, self._best_name())
        try:
            self._weights().read(path).expect_partial()
        except READ_ERRORS as error:
            raise unreadable(path, error) from error
        logging.info("The best weights are those of epoch %d", self.state.best_epoch + 1)

    def remove(self) -> None:
        """Remove all checkpoints at the end of the training; only the chief does this.

        Raises:
          tensorflow.errors.OpError: a file cannot be removed.
        """
        if self._mine == self._folder and tf.io.gfile.exists(self._folder):
            remove_folder(self._folder)

    def _weights(self) -> tf.train.Checkpoint:
        return tf.train.Checkpoint(weights=self._model.variables)

    def _best_name(self) -> str:
        return f"{BEST}{self.state.best_epoch}"

    def _unwritable(self, what: str, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{self._mine}: {what} cannot be written ({cause(error)}); free space there and "
            "run again; the last complete checkpoint is intact"
        )
