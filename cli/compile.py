"""`amazon-reviews compile`, `submit` and `schedule`: the pipeline on a cluster."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import ConfigOption, SetOption, TargetOption, settings_options
from platforms.clusters import COMPILED_FILES, ClusterTarget

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig

ParameterOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Override a parameter of the run: input_base, span, epochs, strategy or "
        "min_accuracy. May be repeated.",
    ),
]

app = typer.Typer()


@app.command(epilog="Example: amazon-reviews compile --target kubeflow --config mine.yaml")
def compile(
    target: TargetOption,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Output file \\[default: NAME.json for vertex, NAME.yaml for kubeflow].",
        ),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compile the pipeline for a cluster: PipelineJob JSON (vertex), PipelineSpec YAML (kubeflow).

    Exit code 2: a setting is wrong, the target requires one that is missing, or the output file
    cannot be written, or is there and is not a compiled pipeline.
    """
    from cli.console import print_line
    from core.files import check_replaced
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    suffix, begins = COMPILED_FILES[target]
    file = output or Path(f"{settings.name}{suffix}")
    free = str(file.with_name(f"{file.stem}-{target}{suffix}"))
    check_replaced(file, begins, f"a pipeline for {target}", such_as=free)
    compile_to(file, settings, target)
    options = settings_options(config, overrides)
    print_line(f"compiled {file}; next: amazon-reviews submit --target {target}{options}")


@app.command(epilog="Example: amazon-reviews submit --target kubeflow --config mine.yaml --wait")
def submit(
    target: TargetOption,
    parameter: ParameterOption = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the run to its end and exit with its result.")
    ] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compile the pipeline, run it on a cluster and print the run's link.

    Exit code 0: the run was submitted; with --wait: it succeeded, whether or not the model was
    pushed. 2: a setting is missing or wrong. 130: Ctrl-C, after which a submitted run continues.
    1: anything else.
    """  # noqa: DOC501
    from cli.console import print_line
    from pipeline.config import load_config
    from platforms import submission

    settings = load_config(config, overrides or ())
    parameters = _parameters(parameter)
    submission.check_submission(settings, target)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / f"{settings.name}{COMPILED_FILES[target].suffix}"
        compile_checked(package, settings, target)
        code = submission.submit(settings, target, package, parameters, wait, print_line)
    raise typer.Exit(code)


@app.command(
    epilog="Example: amazon-reviews schedule --target kubeflow --cron '0 3 * * *' "
    "--config mine.yaml"
)
def schedule(
    target: TargetOption,
    cron: Annotated[
        str | None,
        typer.Option(
            metavar="TIMES",
            help="Times of the runs in UTC: minute, hour, day of the month, month, day of the "
            "week.",
        ),
    ] = None,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove",
            help="Remove the schedule of the pipeline, or stop it while one of its runs is in "
            "progress.",
        ),
    ] = False,
    parameter: ParameterOption = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compile the pipeline, and let a cluster run it at the times of a cron expression.

    A pipeline has one schedule, and its runs do not overlap. In the parameters span and input_base
    the cluster replaces a placeholder by the time of the run.

    Exit code 2: a setting is missing or wrong, or the pipeline has a schedule already.
    """  # noqa: DOC501
    from cli.console import print_line
    from core.errors import ConfigError
    from pipeline.config import load_config
    from platforms import schedule as schedules
    from platforms import submission

    settings = load_config(config, overrides or ())
    if remove == (cron is not None):
        raise ConfigError("schedule: set either --cron or --remove")
    parameters = _parameters(parameter)
    times = schedules.check_cron(cron) if cron else ""
    submission.check_submission(settings, target)
    if remove:
        schedules.remove(settings, target, print_line)
        return
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / f"{settings.name}{COMPILED_FILES[target].suffix}"
        compile_checked(package, settings, target)
        options = settings_options(config, overrides)
        schedules.create(settings, target, package, parameters, times, print_line, options)


def _parameters(given: list[str] | None) -> dict[str, str]:
    """Return the values of `--parameter`.

    Raises:
      ConfigError: a value is not NAME=VALUE.
    """
    from core.overrides import split_pair

    return dict(split_pair(text, "--parameter", "epochs=3") for text in given or [])


def compile_to(file: Path, settings: PipelineConfig, target: ClusterTarget) -> None:
    """Check the settings against the target, and compile the pipeline into a file.

    Args:
      file: the output.
      settings: the settings of the pipeline.
      target: the platform that runs the compiled pipeline.

    Raises:
      ConfigError: a setting is missing, the target does not support a setting, the model lacks a
        hyperparameter of the settings, Beam does not know an argument, the client of MLflow is
        missing, or the file cannot be written.
    """
    from platforms.checks import check_target

    check_target(settings, target)
    compile_checked(file, settings, target)


def compile_checked(file: Path, settings: PipelineConfig, target: ClusterTarget) -> None:
    """Compile the pipeline into a file, without the check of the settings against the target.

    Args:
      file: the output.
      settings: the settings, which `platforms.checks.check_target` has checked.
      target: the platform that runs the compiled pipeline.

    Raises:
      ConfigError: the model lacks a hyperparameter of the settings, Beam does not know an argument,
        the client of MLflow is missing, or the file cannot be written.
    """
    from cli.console import silent_stderr
    from core.processes import large_imports

    with silent_stderr():
        with large_imports():
            from pipeline.chosen_model import check_model
            from platforms.beam import check_beam_args
            from platforms.compile import compile_pipeline

        check_model(settings)
        check_beam_args(settings)
        compile_pipeline(settings, target, file)
