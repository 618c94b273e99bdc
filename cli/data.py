"""`amazon-reviews data`: look at data before a run, convert files, and fetch Kaggle's reviews."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
import yaml

from cli.options import ConfigOption, SetOption, settings_options
from core import exit_codes
from core.errors import ConfigError, ServerError, cause
from core.storage import is_bucket

app = typer.Typer(name="data", help="Manage the input of a pipeline.", no_args_is_help=True)

_KEY = "data.input_base"
DATASET = "bittlingmayer/amazonreviews"
FILES = ("train.ft.txt.bz2", "test.ft.txt.bz2")


@app.command(epilog="Example: amazon-reviews data check exports/ --write mine.yaml")
def check(
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folder or gs:// prefix of the files, or one file \\[default: data.input_base].",
            show_default=False,
        ),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
    write: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the settings with which a run would start to a new file, if there are any.",
        ),
    ] = None,
    is_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Check data before the first run: what a run would read, and everything that it lacks.

    Large files are read in part. Each problem has the lines of YAML that settle it.

    Exit code 0: a run with these settings would start. 2: it would not.
    """  # noqa: DOC501
    from cli.console import out, print_line
    from cli.data_check import as_json, check_command, show_check, show_next
    from core.files import free_name, output_path, write_output
    from pipeline.config import CONFIG_VARIABLE, load_config
    from pipeline.data_check.check import check_data

    if write and os.path.exists(output_path(write, "--write")):
        raise ConfigError(f"--write: {write} exists already; remove it, or write another file")
    given = [*(overrides or ()), *(_input_settings(folder) if folder else [])]
    settings = load_config(config, given)
    if settings.data.input_base is None:
        raise ConfigError(
            f"{_KEY}: not set, so there is no folder to check. Write "
            "`amazon-reviews data check FOLDER`"
        )
    found = check_data(settings, is_own=bool(config or os.environ.get(CONFIG_VARIABLE)))
    if is_json:
        print(as_json(found))
    else:
        show_check(out, found, f"amazon-reviews run{settings_options(config, given)}")
    if write and found.settings and found.is_settled:
        write_output(write, found.settings, "--write")
        if not is_json:
            print_line(f"written: {write}")
    if not is_json and (write or not found.starts):
        target = str(write) if write else free_name("mine", ".yaml", os.path.exists)
        command = check_command(folder, settings_options(config, overrides), target)
        show_next(out, found, "" if write else command, target)
    if not found.starts:
        raise typer.Exit(exit_codes.BAD_INPUT)


def _input_settings(folder: str) -> list[str]:
    """Return the settings for a folder or for one file."""
    if not os.path.isfile(folder):
        return [f"{_KEY}={_quoted(folder)}"]
    parent, name = os.path.split(os.path.abspath(folder))
    return [f"{_KEY}={_quoted(parent)}", f"data.splits={{train: {_quoted(glob.escape(name))}}}"]


def _quoted(text: str) -> str:
    """Return a text as YAML in one line. JSON writes a character like an emoji as two halves."""
    return str(
        yaml.safe_dump(text, default_style='"', width=float("inf"), allow_unicode=True)
    ).rstrip("\n")


@app.command(epilog="Example: amazon-reviews data convert export/ export-utf8/")
def convert(
    folder: Annotated[
        str,
        typer.Argument(metavar="FOLDER", help="Folder or gs:// prefix of the files, or one file."),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="NEW_FOLDER", help="Folder that does not exist, or is empty.")
    ],
) -> None:
    """Write files that no run reads into a new folder, as JSON lines or CSV in UTF-8.

    It unpacks zip and tar archives, decodes text of other encodings than UTF-8, writes JSON
    documents as JSON lines, and joins folders with one text in each file, whose labels are the
    names of the folders. Other files are copied.

    Exit code 2: a file cannot be converted, or NEW_FOLDER cannot be written.
    """
    from cli.console import print_line
    from pipeline.data_convert.convert import convert_folder

    number = convert_folder(folder, target, print_line)
    files = "1 file" if number == 1 else f"{number:,} files"
    print_line(f"{files} in {target}")


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
    if is_bucket(base):
        from platforms.google_credentials import find_credentials

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
