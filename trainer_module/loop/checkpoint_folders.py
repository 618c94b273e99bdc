"""The folders for checkpoints: one for each execution, whose name leads to earlier executions.

The name of a folder is IDENTITY-EXECUTION. The identity is a digest of the input and the settings,
not of the paths that TFX has chosen for them. So an execution can continue from the checkpoints of
an earlier execution with the same identity. Each execution writes to a folder of its own, so two
executions at the same time do not overwrite each other's checkpoints.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import psutil
import tensorflow as tf
from absl import logging

from core.files import list_files
from trainer_module.cluster import exits
from trainer_module.cluster.tf_config import Cluster
from trainer_module.inputs import stored
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

_NAME = re.compile("([0-9a-f]{16})-[0-9a-f]{8}")
_PLACES = {"train_files", "eval_files", "transform_graph", "base_model"}
_OUTPUTS = {"serving_model_dir", "model_run_dir", "checkpoint_dir"}
_STEPS = "steps_done/.ATTRIBUTES/VARIABLE_VALUE"
_HEARTBEAT = "running.json"
SECONDS_BETWEEN_HEARTBEATS = 60.0
SECONDS_WITHOUT_HEARTBEAT = 600.0
"""Time after which a training on another machine counts as dead, and an empty folder as left."""
_ATTEMPTS = 3


def name(job: TrainingJob, code: str) -> str:
    """Return the name of the folder for an execution of `job` with the code fingerprint `code`."""
    settings = job.model_dump(mode="json", exclude=_PLACES | _OUTPUTS)
    identity = json.dumps([settings, code, input_digest(job)], sort_keys=True)
    identity, execution = (
        hashlib.sha256(text.encode()).hexdigest() for text in (identity, job.serving_model_dir)
    )
    return f"{identity[:16]}-{execution[:8]}"


def input_digest(job: TrainingJob) -> str:
    """Return a digest of what a training reads, which does not depend on where it is."""
    digest = hashlib.sha256()
    for patterns in (job.train_files, job.eval_files):
        digest.update(stored.content_digest(patterns).encode())
    # The vocabulary defines the meaning of the ids in the Examples.
    assets = os.path.join(job.transform_graph, "transform_fn", "assets")
    digest.update(_digests(list_files(assets)).encode())
    if job.base_model:
        # The index contains the checksums of all weights.
        variables = os.path.join(job.base_model, "variables")
        digest.update(_digests(list_files(variables, "variables.index")).encode())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def claimed(folder: str, cluster: Cluster | None = None) -> Iterator[None]:
    """Write heartbeats to `folder` within the context, and adopt earlier checkpoints at its start.

    One process of a training does this, before any other process reads the folder.

    Raises:
      CheckpointError: the folder cannot be written to, or an earlier checkpoint cannot be read.
    """
    try:
        tf.io.gfile.makedirs(folder)
        _write_heartbeat(folder)
    except tf.errors.OpError as error:
        raise CheckpointError(
            f"{folder}: no checkpoint can be written here ({error.message})"
        ) from error
    over = threading.Event()
    heart = threading.Thread(target=_write_heartbeats, args=[folder, over], daemon=True)
    heart.start()
    is_restarted = False
    try:
        _adopt_checkpoints(folder)
        yield
    except BaseException as error:
        # After SIGTERM, or if another process is gone, a cluster restarts the training, which
        # counts as running until then.
        is_restarted = isinstance(error, SystemExit) or exits.is_lost_peer(error, cluster)
        raise
    finally:
        over.set()
        heart.join()
        if not is_restarted:
            with contextlib.suppress(tf.errors.NotFoundError):
                tf.io.gfile.remove(os.path.join(folder, _HEARTBEAT))
                if not tf.io.gfile.listdir(folder):
                    tf.io.gfile.rmtree(folder)


def remove_stale(folder: str) -> None:
    """Remove the siblings of `folder`, which is claimed, whose trainings are not running.

    Call this after a successful training. Before that, a user may still want to continue a training
    with other settings from its checkpoints.
    """
    for other in _others(folder):
        if not _is_running(other, folder):
            logging.info("Removing the checkpoints of a training that is not running: %s", other)
            with contextlib.suppress(tf.errors.NotFoundError):
                remove_folder(other)


def _digests(files: Sequence[str]) -> str:
    digests = []
    for file in files:
        with tf.io.gfile.GFile(file, "rb") as stream:
            digests.append((os.path.basename(file), hashlib.sha256(stream.read()).hexdigest()))
    return json.dumps(digests)


def _others(folder: str, identity: str = "") -> list[str]:
    """Return the siblings of `folder` that have a name like it, of all identities or of one."""
    parent, own = os.path.split(folder.rstrip("/"))
    if not _NAME.fullmatch(own):
        return []
    names = [found.rstrip("/") for found in tf.io.gfile.listdir(parent)]
    return [
        os.path.join(parent, found)
        for found in sorted(names)
        if _NAME.fullmatch(found) and found != own and found.startswith(identity)
    ]


def _adopt_checkpoints(folder: str) -> None:
    if tf.io.gfile.exists(os.path.join(folder, LIST_FILE)):
        return
    identity = os.path.basename(folder.rstrip("/")).partition("-")[0]
    done = {other: _steps_done(other, folder) for other in _others(folder, identity)}
    for other in sorted(done, key=done.__getitem__, reverse=True):
        if done[other] and _copy(other, folder):
            logging.info("Continuing from the checkpoints of an earlier execution: %s", other)
            break
    for other in done:
        if not _is_running(other, folder):
            remove_folder(other)


def _steps_done(other: str, folder: str) -> int:
    """Return the steps of the latest checkpoint in the folder `other`; 0 without a checkpoint."""
    for attempt in range(1, _ATTEMPTS + 1):
        latest = None
        try:
            latest = latest_checkpoint(other)
            return int(tf.train.load_variable(latest, _STEPS)) if latest else 0
        except (CheckpointError, *READ_ERRORS) as error:
            # A running training may have removed the checkpoint at this moment.
            if _is_running(other, folder) or not tf.io.gfile.exists(os.path.join(other, LIST_FILE)):
                if attempt == _ATTEMPTS:
                    logging.warning("%s: skipped an unreadable checkpoint: %s", other, error)
                continue
            if latest is None:
                raise
            raise unreadable(latest, error) from error
    return 0


def _copy(source: str, target: str) -> bool:
    """Copy the latest checkpoint of a folder that a training may be writing to.

    Returns:
      False if in each attempt the training removed a file before it was copied.
    """
    for _ in range(_ATTEMPTS):
        files = tf.io.gfile.listdir(source)
        try:
            with tf.io.gfile.GFile(os.path.join(source, LIST_FILE)) as file:
                listed = file.read()
            latest = re.findall(r'^model_checkpoint_path: "(?:.*/)?(.+)"', listed, re.MULTILINE)
            if not latest or f"{latest[0]}.index" not in files:
                continue
            for name in files:
                if name.startswith((f"{latest[0]}.", BEST)):
                    here, there = os.path.join(source, name), os.path.join(target, name)
                    tf.io.gfile.copy(here, there, overwrite=True)
        except tf.errors.NotFoundError:
            continue
        # The list comes last, so that it names a checkpoint that has been copied.
        with tf.io.gfile.GFile(os.path.join(target, LIST_FILE), "w") as file:
            file.write(listed)
        return True
    return False


def _write_heartbeats(folder: str, over: threading.Event) -> None:
    while not over.wait(SECONDS_BETWEEN_HEARTBEATS):
        try:
            _write_heartbeat(folder)
        except tf.errors.OpError as error:
            logging.warning("%s: %s", folder, error)


def _write_heartbeat(folder: str) -> None:
    # Another training reads this file, and must not find half of it.
    file = os.path.join(folder, _HEARTBEAT)
    with tf.io.gfile.GFile(f"{file}.new", "w") as new:
        new.write(json.dumps(_process(os.getpid())))
    tf.io.gfile.rename(f"{file}.new", file, overwrite=True)


def _is_running(other: str, folder: str) -> bool:
    """Return whether the training of the folder `other` seems to be running.

    For a training on this machine, its process decides. For a training on another machine, the age
    of its last heartbeat decides, relative to that of `folder`.
    """
    now = _modified(os.path.join(folder, _HEARTBEAT))
    heartbeat = os.path.join(other, _HEARTBEAT)
    try:
        with tf.io.gfile.GFile(heartbeat) as file:
            process = json.loads(file.read())
        seconds = now - _modified(heartbeat)
    except tf.errors.NotFoundError:
        # A training that has just created its folder writes its first heartbeat next.
        return _is_new(other, now)
    if process["host"] == _host():
        return process == _process(process["process"])
    return seconds < SECONDS_WITHOUT_HEARTBEAT


def _is_new(folder: str, now: float) -> bool:
    """Return whether a folder has no checkpoint and was modified recently."""
    try:
        age = now - _modified(folder)
        files = tf.io.gfile.listdir(folder)
    except tf.errors.NotFoundError:
        # Its training has ended and removed it.
        return False
    # The files of a checkpoint.
    written = re.compile(rf"{LIST_FILE}|(ckpt|best)-\d+\..*")
    return age < SECONDS_WITHOUT_HEARTBEAT and not any(map(written.fullmatch, files))


def _modified(path: str) -> float:
    """Return the time of the last change in seconds, by the clock of the file system."""
    return float(tf.io.gfile.stat(path).mtime_nsec) / 1e9


def _process(pid: int) -> dict[str, Any] | None:
    try:
        started = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None
    return {"host": _host(), "process": pid, "started": started}


def _host() -> str:
    # Pods in the network of their node share its name, but not the numbers of processes.
    return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
