"""Options that several commands of `amazon-reviews` have."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Annotated

import typer

from core.overrides import OPTION
from platforms.clusters import ClusterTarget

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
TargetOption = Annotated[ClusterTarget, typer.Option("--target", help="Platform of the cluster.")]


def settings_words(config: str | None, overrides: Sequence[str] | None) -> list[str]:
    """Return the arguments that select the settings, such as `["--set", "training.epochs=3"]`.

    Args:
      config: the value of `--config`.
      overrides: the values of `--set`.
    """
    words = ["--config", config] if config else []
    return [*words, *(word for each in overrides or () for word in (OPTION, each))]


def settings_options(config: str | None, overrides: Sequence[str] | None) -> str:
    """Return `settings_words` as a text for a shell, in which a space precedes each word.

    The commands that a message recommends contain this text, because they require the same
    settings. It is empty if there are no words.
    """
    return "".join(f" {shlex.quote(word)}" for word in settings_words(config, overrides))
