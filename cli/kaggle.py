"""Brings the Kaggle set of Amazon reviews into a folder, or under a `gs://` prefix."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.errors import ConfigError, ServerError
from platforms.google_cloud.credentials import find_credentials

_KEY = "data.input_base"
DATASET = "bittlingmayer/amazonreviews"
FILES = ("train.ft.txt.bz2", "test.ft.txt.bz2")
_CHUNK = 8 << 20


class FetchError(ServerError):
    """The download failed. The message gives the reason and what to do."""


def fetch(base: str, say: Callable[[str], object]) -> list[str]:
    """Download the files that are not under `base` yet; return the paths of all.

    kagglehub shows a progress bar, and continues an interrupted download where it stopped. A file
    appears under `base` only when it is complete.

    Args:
      base: a folder, or a URL of a file system that Beam writes to, such as gs://.
      say: is called with one line for each file.

    Raises:
      ConfigError: nothing can be written to `base`.
      FetchError: no network, no credential, or no room.
    """
    targets = [_join(base, name) for name in FILES]
    missing = [target for target in targets if not _exists(base, target)]
    if missing:
        _check_writable(base)
    for target, name in zip(targets, FILES, strict=True):
        if target not in missing:
            say(f"{target} is there already")
            continue
        say(f"fetching {name} of Kaggle's {DATASET}")
        _move_into_place(Path(_download(name)), base, name)
    return targets


def _download(name: str) -> str:
    import kagglehub
    import requests
    from kagglehub import exceptions as kaggle

    try:
        return str(kagglehub.dataset_download(DATASET, path=name))
    except (
        kaggle.KaggleApiHTTPError,
        kaggle.UnauthenticatedError,
        kaggle.CredentialError,
    ) as error:
        raise FetchError(
            f"Kaggle refused {name}: {_first_line(error)}; it may want a credential: make an API "
            "token in your Kaggle account's settings and put it into ~/.kaggle/kaggle.json or "
            "KAGGLE_USERNAME and KAGGLE_KEY"
        ) from None
    except (kaggle.BackendError, kaggle.DataCorruptionError, kaggle.NotFoundError) as error:
        raise FetchError(
            f"{name} could not be fetched: {_first_line(error)}; call this again later"
        ) from None
    except requests.exceptions.RequestException as error:
        raise FetchError(
            f"{name} could not be fetched, Kaggle was not reached ({type(error).__name__}); check "
            "network and proxy and call this again, it continues where it stopped"
        ) from None
    except OSError as error:
        raise FetchError(f"{name} could not be stored: {error}") from None


def _join(base: str, name: str) -> str:
    return f"{base.rstrip('/')}/{name}"


def _exists(base: str, target: str) -> bool:
    from apache_beam.io.filesystems import FileSystems

    if base.startswith("gs://"):
        find_credentials(_KEY, base)
    try:
        return bool(FileSystems.exists(target))
    except Exception as error:  # every cloud client has exceptions of its own
        raise ConfigError(
            f"{_KEY}: {base} cannot be read: {_first_line(error)}; set a folder or "
            "gs://BUCKET/FOLDER that this user or service account may write to"
        ) from None


def _check_writable(base: str) -> None:
    """Try it before half a gigabyte is downloaded."""
    from apache_beam.io.filesystems import FileSystems

    try:
        if "://" in base:
            probe = _join(base, ".writable")
            FileSystems.create(probe).close()
            FileSystems.delete([probe])
            return
        existing = Path(base)
        while not existing.exists():
            existing = existing.parent
        if not existing.is_dir():
            raise NotADirectoryError(f"{existing} is a file")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(f"no permission on {existing}")
    except Exception as error:  # every cloud client has exceptions of its own
        raise ConfigError(f"{_KEY}: {base} cannot be written: {_first_line(error)}") from None


def _move_into_place(source: Path, base: str, name: str) -> None:
    from apache_beam.io.filesystem import CompressionTypes
    from apache_beam.io.filesystems import FileSystems

    target, unfinished = _join(base, name), _join(base, f".{name}.part")
    try:
        if "://" not in base:
            os.makedirs(base, exist_ok=True)
        # Else Beam would compress again what is named .bz2.
        plain: Any = {"compression_type": CompressionTypes.UNCOMPRESSED}
        with source.open("rb") as content, FileSystems.create(unfinished, **plain) as file:
            shutil.copyfileobj(content, file, _CHUNK)
        FileSystems.rename([unfinished], [target])
    except Exception as error:  # every cloud client has exceptions of its own
        with contextlib.suppress(Exception):
            FileSystems.delete([unfinished])
        raise FetchError(f"{target} could not be written: {_first_line(error)}") from None
    source.unlink()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
