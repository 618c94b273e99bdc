"""`amazon-reviews submit`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.compile import SUFFIXES, compile_to
from cli.options import ConfigOption, SetOption, TargetOption, make_app
from core.errors import ConfigError

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
    schedule: Annotated[
        str | None,
        typer.Option(
            metavar="CRON",
            help="Kubeflow: run the pipeline repeatedly instead of once, at these times in UTC: "
            "minute, hour, day of the month, month, day of the week.",
        ),
    ] = None,
    schedules: Annotated[
        bool, typer.Option("--schedules", help="List the schedules instead.")
    ] = False,
    delete_schedule: Annotated[
        str | None, typer.Option(metavar="NAME", help="Delete this schedule instead.")
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compile the pipeline, run it on a cluster and print the run's link.

    Exit code 0: submitted or scheduled, or with --wait succeeded. 2: a setting is missing or wrong.
    1: anything else.
    """
    from cli.console import print_line
    from core.overrides import split_pair
    from pipeline.config import load_config
    from platforms import submission

    _check_options(
        {
            "--wait": wait,
            "--schedule": schedule,
            "--schedules": schedules,
            "--delete-schedule": delete_schedule,
        }
    )
    if parameter and (schedules or delete_schedule):
        raise ConfigError("--parameter is for a run or a new schedule; remove it")
    if target != "kubeflow" and (schedule or schedules or delete_schedule):
        raise ConfigError(
            "schedules require --target kubeflow; create one on the page of a run of Vertex AI"
        )
    settings = load_config(config, overrides or ())
    if schedules:
        submission.show_schedules(settings, print_line)
        return
    if delete_schedule:
        submission.delete_schedule(settings, delete_schedule, print_line)
        return
    parameters = dict(split_pair(text, "--parameter", "epochs=3") for text in parameter or [])
    if schedule:
        submission.check_cron(schedule)
    submission.check_submission(settings, target)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / f"{settings.name}{SUFFIXES[target]}"
        compile_to(package, settings, target)
        if schedule:
            submission.create_schedule(settings, package, parameters, schedule, print_line)
            return
        code = submission.submit(settings, target, package, parameters, wait, print_line)
    raise typer.Exit(code)


def _check_options(given: dict[str, Any]) -> None:
    """Raise ConfigError if an option is empty, or more than one of them is given."""
    empty = [option for option, value in given.items() if value == ""]
    if empty:
        raise ConfigError(f"{empty[0]} has no value; give one, or remove it")
    chosen = [option for option, value in given.items() if value]
    if len(chosen) > 1:
        raise ConfigError(f"{chosen[0]} and {chosen[1]} exclude each other; remove one")
