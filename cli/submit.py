"""`amazon-reviews submit`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from cli.compile import SUFFIXES, compile_to
from cli.options import ConfigOption, SetOption, TargetOption, make_app

app = make_app()


@app.command(epilog="Example: amazon-reviews submit --target kubeflow --config mine.yaml --wait")
def submit(
    target: TargetOption,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Override a parameter of the run: input_base, epochs, strategy or min_accuracy. "
            "May be repeated.",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the run to its end and exit with its result.")
    ] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compile the pipeline, run it on a cluster and print the run's link.

    Exit code 0: submitted, or with --wait succeeded. 2: a setting is missing or wrong. 1: anything
    else.
    """
    from cli.console import print_line
    from core.overrides import split_pair
    from pipeline.config import load_config
    from platforms import submission

    settings = load_config(config, overrides or ())
    parameters = dict(split_pair(text, "--parameter", "epochs=3") for text in parameter or [])
    submission.check_submission(settings, target)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / f"{settings.name}{SUFFIXES[target]}"
        compile_to(package, settings, target)
        code = submission.submit(settings, target, package, parameters, wait, print_line)
    raise typer.Exit(code)
