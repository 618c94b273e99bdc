"""`amazon-reviews data fetch`: Kaggle's Amazon reviews, in a folder or under a `gs://` prefix."""

from __future__ import annotations

import os
from collections.abc import Callable

import typer

from cli.options import ConfigOption, SetOption, settings_options
from core.errors import ConfigError, ServerError, cause

app = typer.Typer(name="data", help="Manage the input of a pipeline.", no_args_is_help=True)

_KEY = "data.input_base"
DATASET = "bittlingmayer/amazonreviews"
FILES = ("train.ft.txt.bz2", "test.ft.txt.bz2")


@app.command(epilog="Example: amazon-reviews data fetch --config amazon")
def fetch(config: ConfigOption = None, overrides: SetOption = None) -> None:
    """Download the Kaggle data set (4,000,000 reviews, 492 MB) into data.input_base.

    Exit code 2: data.input_base is not set or not writable. 1: the download failed.
    """  # noqa: DOC501
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

    A file gets its name only when it is complete. kagglehub resumes an interrupted download.

    Args:
      base: a folder, or a URL of a file system that TensorFlow writes to, such as gs://.
      report: called with a line for each file.

    Raises:
      ConfigError: `base` is not writable, or there are no credentials for gs://.
      ServerError: a download failed, or a file could not be written.
    """
    from cli.console import silent_stderr

    # TensorFlow logs while it is imported.
    with silent_stderr():
        import tensorflow as tf

    gfile = tf.io.gfile
    targets = {name: f"{base.rstrip('/')}/{name}" for name in FILES}
    if base.startswith("gs://"):
        from platforms.google_cloud.api import find_credentials

        find_credentials(_KEY, base)
    try:
        gfile.makedirs(base)
        present = [target for target in targets.values() if gfile.exists(target)]
    except Exception as error:  # TensorFlow and each cloud have exceptions of their own
        raise ConfigError(
            f"{_KEY}: {base} cannot be written: {cause(error)}. Set a folder or "
            "gs://BUCKET/FOLDER that this user or service account may write to"
        ) from None
    for name, target in targets.items():
        if target in present:
            report(f"{target} exists already")
            continue
        report(f"downloading {name} of Kaggle's {DATASET}")
        source = _download(name)
        try:
            gfile.copy(source, f"{target}.part", overwrite=True)
            gfile.rename(f"{target}.part", target, overwrite=True)
        except Exception as error:  # TensorFlow and each cloud have exceptions of their own
            raise ServerError(f"{target} could not be written: {cause(error)}") from None
        os.remove(source)
    return list(targets.values())


def _download(name: str) -> str:
    import kagglehub

    try:
        return str(kagglehub.dataset_download(DATASET, path=name))
    except Exception as error:  # kagglehub and its libraries have exceptions of their own
        raise ServerError(
            f"{name} could not be downloaded: {cause(error)}. Kaggle requires an API token in "
            "~/.kaggle/kaggle.json, or KAGGLE_USERNAME and KAGGLE_KEY; an interrupted download "
            "resumes"
        ) from None
