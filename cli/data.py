"""`amazon-reviews data fetch`: Kaggle's Amazon reviews, in a folder or under a `gs://` prefix."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from cli.options import ConfigOption, SetOption, make_app, settings_options
from core.errors import ConfigError, ServerError

app = make_app("Manage the reviews that a pipeline reads.")

_KEY = "data.input_base"
DATASET = "bittlingmayer/amazonreviews"
FILES = ("train.ft.txt.bz2", "test.ft.txt.bz2")


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

    `base` is a folder, or a URL of a file system that TensorFlow writes to, such as gs://. A file
    appears there only when it is complete. kagglehub resumes an interrupted download.

    Raises:
      ConfigError: `base` is not writable.
      FetchError: no network, no credentials, or no space.
    """
    from cli.console import silent_stderr

    # TensorFlow logs while it is imported.
    with silent_stderr():
        import tensorflow as tf

    gfile = tf.io.gfile
    targets = [f"{base.rstrip('/')}/{name}" for name in FILES]
    if base.startswith("gs://"):
        from platforms.google_cloud.api import find_credentials

        find_credentials(_KEY, base)
    try:
        gfile.makedirs(base)
        missing = [target for target in targets if not gfile.exists(target)]
    except Exception as error:  # TensorFlow and each cloud have exceptions of their own
        raise ConfigError(
            f"{_KEY}: {base} cannot be written: {_first_line(error)}. Set a folder or "
            "gs://BUCKET/FOLDER that this user or service account may write to"
        ) from None
    for target, name in zip(targets, FILES, strict=True):
        if target not in missing:
            report(f"{target} exists already")
            continue
        report(f"downloading {name} of Kaggle's {DATASET}")
        source, unfinished = _download(name), f"{target}.part"
        try:
            gfile.copy(source, unfinished, overwrite=True)
            gfile.rename(unfinished, target, overwrite=True)
        except Exception as error:  # TensorFlow and each cloud have exceptions of their own
            with contextlib.suppress(Exception):
                gfile.remove(unfinished)
            raise FetchError(f"{target} could not be written: {_first_line(error)}") from None
        os.remove(source)
    return targets


def _download(name: str) -> str:
    import kagglehub

    try:
        return str(kagglehub.dataset_download(DATASET, path=name))
    except Exception as error:  # kagglehub, requests and the file system have their own
        raise FetchError(
            f"{name} could not be downloaded: {_first_line(error)}. Kaggle requires an API token "
            "in ~/.kaggle/kaggle.json, or KAGGLE_USERNAME and KAGGLE_KEY; an interrupted download "
            "resumes"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
