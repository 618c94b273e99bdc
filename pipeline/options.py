"""Options that several commands of `amazon-reviews` have."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.settings_file import CONFIG_VARIABLE
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
