"""Which folder a training has its checkpoints in, and what becomes of the folders of others.

A folder is called IDENTITY-EXECUTION. Of two executions with one identity the later one can go on
where the earlier one was: the identity comes from what is trained on and how, not from where TFX
has put it this time. Each execution writes to a folder of its own, so that two which run at the
same time do not write over one another.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import psutil
import tensorflow as tf
from absl import logging

from trainer_module import content
from trainer_module.loop.checkpoints import (
    LIST_FILE,
    READ_ERRORS,
    CheckpointError,
    latest_checkpoint,
    remove_folder,
    unreadable,
)
from trainer_module.settings import TrainingJob

_NAME = re.compile("([0-9a-f]{16})-[0-9a-f]{8}")
_PLACES = {"train_files", "eval_files", "transform_graph", "base_model"}
_OUTPUTS = {"serving_model_dir", "model_run_dir", "checkpoint_dir"}
_STEPS = "steps_done/.ATTRIBUTES/VARIABLE_VALUE"
_MARK = "running.json"
SECONDS_BETWEEN_MARKS = 60.0
SECONDS_WITHOUT_MARK = 600.0
"""After which a training on another machine is taken for dead."""
_ATTEMPTS = 3


def name(job: TrainingJob, code: str) -> str:
    """The name of the folder for an execution of `job` with the sources `code`."""
    digest = hashlib.sha256()
    settings = job.model_dump(mode="json", exclude=_PLACES | _OUTPUTS)
    digest.update(json.dumps([settings, code], sort_keys=True).encode())
    for patterns in (job.train_files, job.eval_files):
        digest.update(content.digest(patterns).encode())
    # A vocabulary says what the ids in the Examples mean.
    digest.update(_of_files(os.path.join(job.transform_graph, "*", "assets", "*")).encode())
    if job.base_model:
        # It has the checksums of all weights.
        index = os.path.join(job.base_model, "variables", "variables.index")
        digest.update(_of_files(index).encode())
    execution = hashlib.sha256(job.serving_model_dir.encode()).hexdigest()
    return f"{digest.hexdigest()[:16]}-{execution[:8]}"


@contextlib.contextmanager
def claimed(folder: str) -> Iterator[None]:
    """Marks `folder` as that of a training that runs; before, takes over what an earlier execution
    with the same identity has left.

    One process of a training does this, before any other one looks into the folder.

    Raises:
      CheckpointError: the folder cannot be written to, or what an earlier execution has left cannot
        be read.
    """
    try:
        tf.io.gfile.makedirs(folder)
        _mark(folder)
    except tf.errors.OpError as error:
        raise CheckpointError(
            f"{folder}: no checkpoint can be written here ({error.message})"
        ) from error
    over = threading.Event()
    marking = threading.Thread(target=_keep_marking, args=[folder, over], daemon=True)
    marking.start()
    try:
        _take_over(folder)
        yield
    finally:
        over.set()
        marking.join()
        with contextlib.suppress(tf.errors.NotFoundError):
            tf.io.gfile.remove(os.path.join(folder, _MARK))
            if not tf.io.gfile.listdir(folder):
                tf.io.gfile.rmtree(folder)


def remove_stale(folder: str) -> None:
    """Removes the folders beside `folder`, which is claimed, of trainings that do not run.

    To be called when a training has succeeded: until then what another one with other settings has
    left may be what somebody wants to go on with.
    """
    for other in _others(folder):
        if not _runs(other, folder):
            logging.info("Removing the checkpoints of a training that does not run: %s", other)
            with contextlib.suppress(tf.errors.NotFoundError):
                remove_folder(other)


def _of_files(pattern: str) -> str:
    digests = []
    for file in sorted(tf.io.gfile.glob(pattern)):
        with tf.io.gfile.GFile(file, "rb") as stream:
            digests.append((os.path.basename(file), hashlib.sha256(stream.read()).hexdigest()))
    return json.dumps(digests)


def _others(folder: str, identity: str = "") -> list[str]:
    """The folders beside `folder` that were named here, all or those of one identity."""
    parent, own = os.path.split(folder.rstrip("/"))
    if not _NAME.fullmatch(own):
        return []
    names = [found.rstrip("/") for found in tf.io.gfile.listdir(parent)]
    return [
        os.path.join(parent, found)
        for found in sorted(names)
        if _NAME.fullmatch(found) and found != own and found.startswith(identity)
    ]


def _take_over(folder: str) -> None:
    if tf.io.gfile.exists(os.path.join(folder, LIST_FILE)):
        return
    identity = os.path.basename(folder.rstrip("/")).partition("-")[0]
    done = {other: _steps_done(other, folder) for other in _others(folder, identity)}
    for other in sorted(done, key=done.__getitem__, reverse=True):
        if done[other] and _copy(other, folder):
            logging.info("Going on with the checkpoints of an earlier execution, %s", other)
            break
    for other in done:
        if not _runs(other, folder):
            remove_folder(other)


def _steps_done(other: str, folder: str) -> int:
    """Of the latest checkpoint in the folder `other`, as `folder`'s training sees it; 0: none."""
    latest = None
    try:
        latest = latest_checkpoint(other)
        return int(tf.train.load_variable(latest, _STEPS)) if latest else 0
    except (CheckpointError, *READ_ERRORS) as error:
        # A training that runs may write or remove them at this moment.
        if _runs(other, folder) or not tf.io.gfile.exists(os.path.join(other, LIST_FILE)):
            logging.warning("%s: no checkpoint that can be read: %s", other, error)
            return 0
        if latest is None:
            raise
        raise unreadable(latest, error) from error


def _copy(source: str, target: str) -> bool:
    """Whether all files of a folder of checkpoints, which may be written to, were copied."""
    for _ in range(_ATTEMPTS):
        files = [file for file in tf.io.gfile.listdir(source) if _is_of_checkpoint(file)]
        # Last the file that says which checkpoint is the latest.
        files.sort(key=lambda file: file == LIST_FILE)
        try:
            for file in files:
                here, there = os.path.join(source, file), os.path.join(target, file)
                tf.io.gfile.copy(here, there, overwrite=True)
        except tf.errors.NotFoundError:
            continue
        return True
    return False


def _is_of_checkpoint(file: str) -> bool:
    return file == LIST_FILE or re.fullmatch(r"(ckpt|best)-\d+\..*", file) is not None


def _keep_marking(folder: str, over: threading.Event) -> None:
    while not over.wait(SECONDS_BETWEEN_MARKS):
        try:
            _mark(folder)
        except tf.errors.OpError as error:
            logging.warning("%s: %s", folder, error)


def _mark(folder: str) -> None:
    with tf.io.gfile.GFile(os.path.join(folder, _MARK), "w") as file:
        file.write(json.dumps(_process(os.getpid())))


def _runs(other: str, folder: str) -> bool:
    """Whether the training of the folder `other` runs, as far as `folder`'s can tell."""
    now = _marked(folder)
    try:
        with tf.io.gfile.GFile(os.path.join(other, _MARK)) as file:
            process = json.loads(file.read())
        seconds = now - _marked(other)
    except (tf.errors.NotFoundError, ValueError):
        # It was removed, or half written when the process was killed.
        return False
    if process["host"] == socket.gethostname():
        return process == _process(process["process"])
    return seconds < SECONDS_WITHOUT_MARK


def _marked(folder: str) -> float:
    """When, by the clock of the file system."""
    return float(tf.io.gfile.stat(os.path.join(folder, _MARK)).mtime_nsec) / 1e9


def _process(pid: int) -> dict[str, Any] | None:
    try:
        started = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None
    return {"host": socket.gethostname(), "process": pid, "started": started}
