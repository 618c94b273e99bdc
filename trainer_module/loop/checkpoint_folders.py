"""The folders for checkpoints, one for each execution of a training.

The name of a folder is IDENTITY-EXECUTION. The identity is a digest of the input and the settings,
without the paths that TFX has chosen for them. So an execution can continue from the checkpoints of
an earlier execution with the same identity. Each execution writes to its own folder, so two
simultaneous executions do not overwrite each other's checkpoints.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping

import tensorflow as tf
from absl import logging

from core.files import list_files
from examples.digest import content_digest
from preprocessing.labels import LABELS_FILE
from trainer_module.loop.checkpoints import (
    BEST,
    LIST_FILE,
    READ_ERRORS,
    CheckpointError,
    latest_checkpoint,
    remove_folder,
    unreadable,
)
from trainer_module.settings import TrainingJob

_NAME = re.compile("[0-9a-f]{16}-[0-9a-f]{8}")
_INPUTS = {"train_files", "eval_files", "transform_graph", "base_model"}
_OUTPUTS = {"serving_model_dir", "model_run_dir", "checkpoint_dir"}
_STEPS = "steps_done/.ATTRIBUTES/VARIABLE_VALUE"
_SECONDS_KEPT = 7 * 24 * 3600.0
"""Seconds without a new checkpoint after which a training of another identity counts as ended."""


def folder_name(job: TrainingJob, code: str) -> str:
    """Return the name of the folder for the checkpoints of an execution.

    Args:
      job: the job, whose `serving_model_dir` identifies the execution.
      code: the fingerprint of the code.

    Raises:
      tensorflow.errors.OpError: a file of the Examples, of the transform graph or of the base model
        cannot be read.
    """
    settings = job.model_dump(mode="json", exclude=_INPUTS | _OUTPUTS)
    examples = [content_digest(patterns) for patterns in (job.train_files, job.eval_files)]
    # The vocabulary defines the meaning of the ids in the Examples, and the classes that of their
    # labels.
    files = list_files(os.path.join(job.transform_graph, "transform_fn", "assets"))
    files += list_files(job.transform_graph, LABELS_FILE)
    if job.base_model:
        # The index contains the checksums of all weights.
        files += list_files(os.path.join(job.base_model, "variables"), "variables.index")
    contents = [(os.path.basename(file), _digest(_read(file))) for file in files]
    identity = json.dumps([settings, code, examples, contents], sort_keys=True)
    return f"{_digest(identity.encode())[:16]}-{_digest(job.serving_model_dir.encode())[:8]}"


@contextlib.contextmanager
def continued(folder: str) -> Iterator[None]:
    """Continue a training from an earlier checkpoint; remove old folders after the context.

    Folders whose names begin with the same identity belong to the same training. If `folder` has no
    checkpoint, the one with the most steps is copied from these folders. One process of a training
    does this, before any other process reads the folder.

    If the context succeeds, two kinds of folders are removed: those of the same identity in which
    no checkpoint was written during the context, and those of other identities after a week without
    a new checkpoint. Until then a user can continue such a training, and a cluster can restart it.

    Args:
      folder: the folder for the checkpoints of this execution, which is created if it is missing.

    Raises:
      CheckpointError: the folder cannot be written to, or an earlier checkpoint cannot be read.
      tensorflow.errors.OpError: after the context, a folder cannot be listed or removed.
    """
    try:
        tf.io.gfile.makedirs(folder)
        identity = os.path.basename(folder.rstrip("/")).partition("-")[0]
        earlier = {
            other: _read_list(other)
            for other in _siblings(folder)
            if os.path.basename(other).startswith(identity)
        }
        if not tf.io.gfile.exists(os.path.join(folder, LIST_FILE)):
            _adopt(folder, earlier)
    except tf.errors.OpError as error:
        raise CheckpointError(
            f"{folder}: no checkpoint can be written here ({error.message})"
        ) from error
    yield
    for other in _siblings(folder):
        # Another execution may remove the same folders.
        with contextlib.suppress(tf.errors.NotFoundError):
            if other in earlier:
                is_over = _read_list(other) == earlier[other]
            else:
                is_over = _modified(folder) - _modified(other) > _SECONDS_KEPT
            if is_over:
                logging.info("Removing the checkpoints of a training that is over: %s", other)
                remove_folder(other)


def _adopt(folder: str, earlier: Mapping[str, str]) -> None:
    """Copy the checkpoint with the most steps to `folder`.

    `earlier` maps each earlier folder to the content of its list of checkpoints.
    """
    steps, latest = max(map(_latest, earlier), default=(0, ""))
    if not steps:
        return
    source = os.path.dirname(latest)
    try:
        for file in list_files(source):
            name = os.path.basename(file)
            if name.startswith((f"{os.path.basename(latest)}.", BEST)):
                tf.io.gfile.copy(file, os.path.join(folder, name), overwrite=True)
        is_complete = _read_list(source) == earlier[source]
    except tf.errors.NotFoundError:
        is_complete = False
    if not is_complete:
        logging.info("%s belongs to a training that is running; it is not continued here", source)
        return
    # The list is written last, so that it only names checkpoints that have been copied.
    with tf.io.gfile.GFile(os.path.join(folder, LIST_FILE), "w") as stream:
        stream.write(earlier[source])
    logging.info("Continuing from the checkpoints of an earlier execution: %s", source)


def _latest(folder: str) -> tuple[int, str]:
    """Return the number of steps and the path of the latest checkpoint in a folder; 0 without one.

    Raises:
      CheckpointError: the checkpoint cannot be read.
    """  # noqa: DOC501
    latest = latest_checkpoint(folder)
    if latest is None:
        return 0, ""
    try:
        return int(tf.train.load_variable(latest, _STEPS)), latest
    except READ_ERRORS as error:
        raise unreadable(latest, error) from error


def _siblings(folder: str) -> list[str]:
    """Return the other folders for checkpoints in the parent folder of `folder`."""
    parent, own = os.path.split(folder.rstrip("/"))
    if not _NAME.fullmatch(own):
        return []
    names = sorted(found.rstrip("/") for found in tf.io.gfile.listdir(parent))
    others = [found for found in names if _NAME.fullmatch(found) and found != own]
    return [os.path.join(parent, found) for found in others]


def _read_list(folder: str) -> str:
    """Return the content of the list of checkpoints in a folder; empty without a checkpoint."""
    try:
        return _read(os.path.join(folder, LIST_FILE)).decode(errors="replace")
    except tf.errors.NotFoundError:
        return ""


def _modified(folder: str) -> float:
    """Return the time of the last checkpoint in a folder, by the clock of the file system."""
    listed = os.path.join(folder, LIST_FILE)
    return float(tf.io.gfile.stat(listed if _read_list(folder) else folder).mtime_nsec) / 1e9


def _read(file: str) -> bytes:
    with tf.io.gfile.GFile(file, "rb") as stream:
        content: bytes = stream.read()
        return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
