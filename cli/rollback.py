"""`amazon-reviews rollback`: serve an earlier model again."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options import ConfigOption, SetOption, make_app

app = make_app()


@app.command(epilog="Example: amazon-reviews rollback 1764150000")
def rollback(
    version: Annotated[
        str | None,
        typer.Argument(
            help="Version of `amazon-reviews models` \\[default: the one before the served one]."
        ),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Serve an earlier pushed model again; with a later version, go forward again.

    All servers of paths.serving switch to it as to a new model, without a failed request. The
    model that was served is not pushed again. Exit code 2: there is no such version.
    """
    from cli.console import print_line, silent_stderr
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    with silent_stderr():
        from platforms.models import roll_back

        for line in roll_back(settings, version):
            print_line(line)
