"""`amazon-reviews data fetch`: Kaggle's Amazon reviews, in a folder or under a `gs://` prefix."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cli.options import ConfigOption, SetOption, make_app, settings_options
from core.errors import ConfigError, ServerError

app = make_app("Manage the reviews that a pipeline reads.")

_KEY = "data.input_base"
DATASET = "bittlingmayer/amazonreviews"
FILES = ("train.ft.txt.bz2", "test.ft.txt.bz2")
_CHUNK = 8 << 20


class FetchError(ServerError):
    """A failed download; the message contains the reason and the remedy."""


@app.callback()
def _data() -> None:
    """Make Typer build a group although there is one command."""


@app.command(epilog="Example: amazon-reviews data fetch --config amazon")
def fetch(config: ConfigOption = None, overrides: SetOption = None) -> None:
    """Download the Kaggle set (4,000,000 reviews, 492 MB) into data.input_base.

    Exit code 2: data.input_base is not set or not writable. 1: the download failed.
    """
    from cli.console import print_line
    from pipeline.config import load_config

    base = load_config(config, overrides or ()).data.input_base
    if base is None:
        raise ConfigError(
            "data.input_base: not set, so the download has no target folder. Set it, or run "
            "`amazon-reviews data fetch --config amazon`"
        )
    files = fetch_files(base, report=print_line)
    options = settings_options(config, overrides)
    print_line(f"{len(files)} files in {base}; next: amazon-reviews run{options}")


def fetch_files(base: str, report: Callable[[str], object]) -> list[str]:
    """Download the files that are missing under `base`; return the paths of all files.

    kagglehub shows a progress bar, and resumes an interrupted download. A file appears under `base`
    only when it is complete.

    Args:
      base: a folder, or a URL of a file system that Beam writes to, such as gs://.
      report: called with one line for each file.

    Raises:
      ConfigError: `base` is not writable.
      FetchError: no network, no credentials, or no space.
    """
    targets = [_join(base, name) for name in FILES]
    missing = [target for target in targets if not _exists(base, target)]
    if missing:
        _check_writable(base)
    for target, name in zip(targets, FILES, strict=True):
        if target not in missing:
            report(f"{target} exists already")
            continue
        report(f"downloading {name} of Kaggle's {DATASET}")
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
            f"Kaggle refused {name}: {_first_line(error)}. If credentials are missing, create an "
            "API token in the settings of your Kaggle account and write it to "
            "~/.kaggle/kaggle.json, or set KAGGLE_USERNAME and KAGGLE_KEY"
        ) from None
    except (kaggle.BackendError, kaggle.DataCorruptionError, kaggle.NotFoundError) as error:
        raise FetchError(
            f"{name} could not be downloaded: {_first_line(error)}. Repeat the command later"
        ) from None
    except requests.exceptions.RequestException as error:
        raise FetchError(
            f"{name} could not be downloaded, Kaggle is unreachable ({type(error).__name__}). "
            "Check network and proxy and repeat the command; the download resumes"
        ) from None
    except OSError as error:
        raise FetchError(f"{name} could not be stored: {error}") from None


def _join(base: str, name: str) -> str:
    return f"{base.rstrip('/')}/{name}"


def _exists(base: str, target: str) -> bool:
    from apache_beam.io.filesystems import FileSystems

    if base.startswith("gs://"):
        from platforms.google_cloud.credentials import find_credentials

        find_credentials(_KEY, base)
    try:
        return bool(FileSystems.exists(target))
    except Exception as error:  # every cloud client has exceptions of its own
        raise ConfigError(
            f"{_KEY}: {base} cannot be read: {_first_line(error)}. Set a folder or "
            "gs://BUCKET/FOLDER that this user or service account may write to"
        ) from None


def _check_writable(base: str) -> None:
    """Raise ConfigError if `base` is not writable, before half a gigabyte is downloaded."""
    from apache_beam.io.filesystems import FileSystems

    from preprocessing.reading.files import delete_file

    try:
        if "://" in base:
            probe = _join(base, ".writable")
            FileSystems.create(probe).close()
            delete_file(probe)
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

    from preprocessing.reading.files import delete_file

    target, unfinished = _join(base, name), _join(base, f".{name}.part")
    try:
        if "://" not in base:
            os.makedirs(base, exist_ok=True)
        # Without it Beam compresses a file again if its name ends in .bz2.
        plain: Any = {"compression_type": CompressionTypes.UNCOMPRESSED}
        with source.open("rb") as content, FileSystems.create(unfinished, **plain) as file:
            shutil.copyfileobj(content, file, _CHUNK)
        FileSystems.rename([unfinished], [target])
    except Exception as error:  # every cloud client has exceptions of its own
        with contextlib.suppress(Exception):
            delete_file(unfinished)
        raise FetchError(f"{target} could not be written: {_first_line(error)}") from None
    source.unlink()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
