"""The folders of a run on this machine: checked, created and locked once; imports no TFX.

A run locks its local `paths.root` with flock. The kernel releases the lock when all processes that
hold it have ended. `amazon-reviews run` acquires the lock, and the pipeline's process inherits it.
A run of the TFX command line acquires the lock itself.
"""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import ConfigError
from core.files import lock_file
from core.storage import is_url
from pipeline.config import PipelineConfig, log_folder
from pipeline.destinations import destination_paths
from platforms.checks import check_target

PREPARED = "--prepared"
"""The option of `platforms.local.main` for a process whose parent has called `prepare`. The process
reads the JSON of `pipeline.config.recorded_settings` from standard input."""


def prepare(config: PipelineConfig, *, locks: bool = True) -> int | None:
    """Check the settings for this machine, create the folders of a run, and lock its root.

    The process that has loaded the settings calls this function once. The pipeline's process
    receives the settings from it, and calls only `platforms.local.preflight.check_run`.

    Args:
      config: the settings of the run.
      locks: whether to lock `paths.root`. A command that only reads the pipeline requires no lock.

    Returns:
      The descriptor of the lock, see `lock_root`; None without a lock.

    Raises:
      ConfigError: a setting is missing, this machine does not support a setting, a folder cannot be
        written, or another run holds the lock.
    """
    check_target(config, "local")
    make_folders(config)
    return lock_root(config.paths.root) if locks else None


def make_folders(config: PipelineConfig) -> None:
    """Create the local folders of a run.

    Raises:
      ConfigError: a folder cannot be created or written. The message names its setting.
    """
    paths = config.paths
    if is_url(paths.metadata):
        scheme = paths.metadata.partition("://")[0]
        raise ConfigError(f"paths.metadata: {scheme}://… is not supported; set a file path")
    folders = (
        ("paths.root", log_folder(config)),
        *destination_paths(config).items(),
        ("paths.checkpoints", paths.checkpoints),
        # SQLite writes a journal beside its file.
        ("paths.metadata", os.path.dirname(paths.metadata)),
    )
    for key, folder in folders:
        if is_url(folder):
            continue
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{key}: {folder} cannot be created: {error.strerror}") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ConfigError(f"{key}: {folder} cannot be written: {_reason(folder)}")
    if os.path.exists(paths.metadata) and not os.access(paths.metadata, os.R_OK | os.W_OK):
        reason = _reason(paths.metadata)
        raise ConfigError(f"paths.metadata: {paths.metadata} cannot be written: {reason}")


def _reason(path: str) -> str:
    """Return why this user cannot write to an existing file or folder."""
    is_read_only = os.statvfs(path).f_flag & os.ST_RDONLY
    return "its file system is read-only" if is_read_only else "no permission"


def lock_root(root: str) -> int | None:
    """Lock `paths.root` until this process and those that inherit the lock have ended.

    Args:
      root: `paths.root`. A URL is not locked.

    Returns:
      The descriptor of the lock; None if `root` is in a bucket.

    Raises:
      ConfigError: another run holds the lock, or the file system does not support locks.
    """
    if is_url(root):
        return None
    path = os.path.join(root, ".lock")
    try:
        return lock_file(path)
    except BlockingIOError:
        raise ConfigError(
            f"paths.root: {root} is in use by another run; repeat the command after its end, or "
            "set another paths.root"
        ) from None
    except OSError as error:
        raise ConfigError(f"paths.root: {path} cannot be locked: {error.strerror}") from None
