"""`amazon-reviews report`."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer

from cli.options import ConfigOption, SetOption, writing

app = typer.Typer()


@app.command(epilog="Example: amazon-reviews report --output report.html")
def report(
    run: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Id of the run, or its beginning \\[default: the newest]."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to write \\[default: report-ID.html]."),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Write the report of a run, also of one that failed, as one HTML page.

    Exit code 2: there is no such run.
    """
    from cli.console import print_line, silent_stderr
    from pipeline.config import changed_settings, load_config
    from platforms.local.runs import find_run

    settings = load_config(config, overrides or ())
    found = find_run(settings, run)
    file = output or Path(f"report-{found.id.replace(':', '')}.html")
    with silent_stderr():
        from components.run_report.page import collect, render

        changed = changed_settings(json.dumps(found.settings))
        page = render(collect(dataclasses.replace(found, name=settings.name, changed=changed)))
    with writing(file):
        file.write_text(page, encoding="utf-8")
    print_line(str(file))
