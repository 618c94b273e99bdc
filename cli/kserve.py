"""`amazon-reviews kserve`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import ConfigOption, SetOption, check_local, make_app

app = make_app()


@app.command()
def kserve(
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
    """Write the KServe InferenceService that serves the pushed models, for kubectl apply.

    Exit code 2: a setting is missing or wrong.
    """
    from pipeline.config import load_config
    from platforms.kubeflow.inference_service import render

    text = render(load_config(config, overrides or ()))
    if output:
        output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
