"""Options that several commands of `amazon-reviews` have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from pipeline.settings_file import CONFIG_VARIABLE, ConfigError
from pipeline.target_checks import ClusterTarget

ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help=f"Settings, a YAML file or a preset's name [default: ${CONFIG_VARIABLE} or sample].",
    ),
]
TargetOption = Annotated[ClusterTarget, typer.Option("--target", help="The cluster's kind.")]


def on_this_machine(file: Path | None) -> Path | None:
    """Return an output file as it is given.

    Raises:
      ConfigError: it is a URL, which would become a local folder named after the scheme.
    """
    # Path has already made one slash of the two.
    if file and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+:", file.parts[0]):
        raise ConfigError(
            f"--output: {file.parts[0]}//{'/'.join(file.parts[1:])} is not a file of this machine; "
            "write to a local file and copy it"
        )
    return file
