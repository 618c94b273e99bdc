"""`amazon-reviews init`: a project of one's own, with settings, golden sentences and code."""

from __future__ import annotations

import contextlib
import re
import unicodedata
from pathlib import Path
from typing import Annotated

import typer

from core.errors import ConfigError
from core.values import describe_pattern

app = typer.Typer()

SETTINGS = "mine.yaml"
_TEMPLATE = Path(__file__).with_name("project")
_NAME = "my_project"
"""The name of the pipeline in the template, which the name of the folder replaces."""


@app.command(epilog="Example: amazon-reviews init mine")
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder to create; it may exist if empty.")
    ],
) -> None:
    """Create a project: settings, golden sentences, a model and a component, all to be edited.

    Exit code 2: the folder contains files already, or cannot be written.
    """
    import shlex

    from cli.console import print_line

    for file in create_project(folder):
        print_line(f"{file}")
    settings = shlex.quote(str(folder / SETTINGS))
    print_line(f"next: amazon-reviews run --config {settings}")


def create_project(folder: Path) -> list[Path]:
    """Write a new project to a folder; return the files.

    Args:
      folder: the folder, which is created if it is missing.

    Raises:
      ConfigError: the folder contains files already or cannot be written, or its path is a pattern,
        contains a control character or is not UTF-8.
    """
    path = str(folder.resolve())
    problem = describe_pattern(path)
    if problem:
        raise ConfigError(problem)
    # `visible` keeps tabs and line breaks, which a printed path cannot have either.
    if any(unicodedata.category(char) == "Cc" for char in path):
        raise ConfigError(f"{path!r} contains a control character; choose another name")
    # Python decodes a byte that is not UTF-8 to a character that UTF-8 cannot encode.
    if path.encode(errors="ignore").decode() != path:
        raise ConfigError(f"{path!r} is not UTF-8; choose another name")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(
                f"{folder} is not empty, and nothing in it is overwritten; name a new folder"
            )
        return _write(folder)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written: {error.strerror}; name a new folder"
        ) from None


def _write(folder: Path) -> list[Path]:
    """Write all files of a new project to an empty folder, or none; return the files.

    Raises:
      OSError: a file cannot be written. The folder is empty again.
    """
    written = []
    with contextlib.ExitStack() as undo:
        for source in sorted(_TEMPLATE.rglob("*")):
            if not source.is_file() or source.suffix == ".pyc":
                continue
            text = source.read_text(encoding="utf-8")
            if source.name == SETTINGS:
                text = text.replace(_NAME, _pipeline_name(folder))
            target = folder / source.relative_to(_TEMPLATE)
            if not target.parent.exists():
                target.parent.mkdir()
                undo.callback(target.parent.rmdir)
            with target.open("x", encoding="utf-8") as file:
                undo.callback(target.unlink)
                file.write(text)
            written.append(target)
        undo.pop_all()
    return written


def _pipeline_name(folder: Path) -> str:
    """Return the name of a folder in the characters that `name` in the settings allows."""
    name = re.sub("[^a-z0-9_-]+", "_", folder.resolve().name.lower()).strip("_-")
    return name if re.match("[a-z]", name) else _NAME
