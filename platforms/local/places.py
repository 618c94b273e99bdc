"""The folders and files that a run writes on this machine; imports no TFX.

A run holds the lock of its local `paths.root`, by flock: the kernel releases it when a process
ends. `amazon-reviews run` acquires the lock, which the pipeline's process inherits. A run of the
TFX command line acquires it itself.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

from core.errors import ConfigError
from core.files import WITHOUT_LOCKS
from pipeline.config import PipelineConfig, log_folder


def check_places(config: PipelineConfig) -> None:
    """Check that a run can create and write its local paths, without creating any."""
    paths = config.paths
    _check_folder("paths.root", paths.root)
    _check_folder("paths.root", log_folder(config))
    _check_folder("paths.serving", paths.serving)
    _check_folder("paths.checkpoints", paths.checkpoints)
    _check_database(paths.metadata)


def make_folder(key: str, folder: str) -> None:
    """Create a folder that the setting `key` names, or raise a ConfigError."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{key}: {folder} cannot be created: {error.strerror}") from None


def lock_root(root: str) -> int | None:
    """Lock a local `paths.root` until this process and those that inherit the lock have ended.

    Returns:
      The descriptor of the lock. None if `root` is in a bucket. None and a warning on standard
      error if `root` is on a file system without locks.

    Raises:
      ConfigError: another run holds the lock.
    """
    if "://" in root:
        return None
    make_folder("paths.root", root)
    path = os.path.join(root, ".lock")
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ConfigError(f"paths.root: {path} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise ConfigError(
                f"paths.root: {root} is in use by another run; repeat the command after its end, "
                "or set another paths.root"
            ) from None
        if error.errno not in WITHOUT_LOCKS:
            raise
        print(
            f"paths.root: {root} cannot be locked ({error.strerror}); do not start a second run "
            "with it at the same time",
            file=sys.stderr,
        )
        return None
    return lock


def _check_folder(key: str, folder: str) -> None:
    if "://" in folder:
        return
    existing = folder
    # A link without a target counts as existing: no folder can be created in its place.
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        raise ConfigError(f"{key}: {folder} cannot be created, because {existing} is no folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(f"{key}: {folder} cannot be written: no permission for {existing}")


def _check_database(file: str) -> None:
    key = "paths.metadata"
    if "://" in file:
        raise ConfigError(
            f"{key}: {file.partition('://')[0]}://… is not supported; set a file path"
        )
    # SQLite writes a journal beside its file.
    _check_folder(key, os.path.dirname(file))
    if os.path.isdir(file):
        raise ConfigError(f"{key}: {file} is a folder; set a file, or remove the setting")
    if os.path.exists(file) and not os.access(file, os.R_OK | os.W_OK):
        raise ConfigError(f"{key}: {file} cannot be written: no permission")
