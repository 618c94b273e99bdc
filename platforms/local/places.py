"""Checks that a run can write its folders and files; imports no TFX."""

from __future__ import annotations

import os
from pathlib import Path

from core.errors import ConfigError
from pipeline.config import PipelineConfig, log_folder


def check_places(config: PipelineConfig) -> None:
    """Check every local path that a run writes, without creating any.

    Raises:
      ConfigError: a path cannot be created or written; the message names its setting.
    """
    paths = config.paths
    _check_folder("paths.root", paths.root)
    _check_folder("paths.root", log_folder(config))
    _check_folder("paths.serving", paths.serving)
    _check_folder("paths.checkpoints", paths.checkpoints)
    _check_database(paths.metadata)


def make_folder(key: str, folder: str) -> None:
    """Create a folder that the setting `key` names.

    Raises:
      ConfigError: the folder cannot be created.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{key}: {folder} cannot be created: {error.strerror}") from None


def _check_folder(key: str, folder: str) -> None:
    if "://" in folder:
        return
    existing = folder
    # A link without a target counts as existing: no folder can be created in its place.
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        kind = "a file" if os.path.exists(existing) else "a link without a target"
        raise ConfigError(f"{key}: {folder} cannot be created, because {existing} is {kind}")
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
