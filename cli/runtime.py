"""`amazon-reviews runtime`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import ConfigOption, SetOption, check_local, make_app

app = make_app()


@app.command()
def runtime(
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Output file \\[default: standard output].",
            callback=check_local,
        ),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write what an administrator of a Kubernetes cluster applies once, for kubectl apply.

    These are the ClusterTrainingRuntime of TrainJobs, and the NetworkPolicy of training pods.
    Exit code 2: a setting is wrong.
    """
    from pipeline.config import load_config
    from platforms.kubeflow.cluster_objects import render

    text = render(load_config(config, overrides or ()))
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
