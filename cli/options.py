"""Options that several commands of `amazon-reviews` have."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from core.errors import ConfigError
from core.overrides import OPTION

ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Settings: a YAML file or a preset's name \\[default: $PIPELINE_CONFIG or sample].",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        OPTION,
        metavar="KEY=VALUE",
        help="Override one setting, such as training.epochs=3; wins over $PIPELINE_SET. "
        "May be repeated.",
    ),
]
TargetOption = Annotated[
    Literal["vertex", "kubeflow"], typer.Option("--target", help="Platform of the cluster.")
]


def make_app(help: str | None = None) -> Any:
    """Return the Typer app of one module of commands; `help` is for a group of commands."""
    # Typer uses the docstring of a callback only if the app has no `help` at all, not even None.
    about: dict[str, Any] = {"help": help} if help else {}
    return typer.Typer(
        **about,
        no_args_is_help=help is not None,
        add_completion=False,
        pretty_exceptions_enable=False,
    )


def settings_words(config: str | None, overrides: Sequence[str] | None) -> list[str]:
    """Return the arguments that select the settings."""
    words = ["--config", config] if config else []
    return [*words, *(word for each in overrides or () for word in (OPTION, each))]


def settings_options(config: str | None, overrides: Sequence[str] | None) -> str:
    """Return the same for a shell, each argument after a space; empty without any.

    A message that names the next command contains them, because that command needs the same
    settings.
    """
    return "".join(f" {shlex.quote(word)}" for word in settings_words(config, overrides))


def check_output(file: Path, *, creates_folders: bool = False) -> None:
    """Check that an output file can be created.

    Raises:
      ConfigError: `file` is a folder or a URL, or this user may not create it.
    """
    # `Path` replaces the two slashes of a URL by one.
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+:", file.parts[0]):
        raise ConfigError(
            f"--output: {file.parts[0]}//{'/'.join(file.parts[1:])} is not a local path. "
            "Write a local file and copy it"
        )
    if file.is_dir():
        raise ConfigError(f"--output: {file} is a folder; name a file")
    folder = file.absolute().parent
    while creates_folders and not os.path.lexists(folder):
        folder = folder.parent
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise ConfigError(
            f"--output: {file} cannot be written: {folder} is not a folder that this user may "
            "write to"
        )


def write_output(file: Path, text: str) -> None:
    """Write a text to an output file.

    Raises:
      ConfigError: the file cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--output: {file} cannot be written: {error.strerror}") from None
