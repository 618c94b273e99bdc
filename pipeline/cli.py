"""The `amazon-reviews` command."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from kubeflow.image import image_app
from kubeflow.serving.inference_service import serving_manifest
from pipeline import exit_codes
from pipeline.config import PipelineConfig, load_config
from pipeline.google_credentials import find_credentials
from pipeline.options import ConfigOption, TargetOption, on_this_machine
from pipeline.settings_file import CONFIG_VARIABLE, ConfigError
from pipeline.target_checks import ClusterTarget, check_target
from preprocessing.errors import InputError

if TYPE_CHECKING:
    from serving.predictor import Prediction

app = typer.Typer(
    help="Raw Amazon reviews to a trained, evaluated and pushed sentiment model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The data that a pipeline reads.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(image_app, name="image")
app.command("kserve")(serving_manifest)

SUFFIXES = {"vertex": ".json", "kubeflow": ".yaml"}
# Paths and messages may look like markup, or like codes of emoji.
_out = Console(highlight=False, markup=False, emoji=False)


@app.callback()
def _commands() -> None:
    """Without this, Typer would make a single command of the program."""


@app.command()
def run(config: ConfigOption = None) -> None:
    """Run the pipeline on this machine and watch it.

    Exit code 0: a model was pushed. 2: settings or input are wrong, or another run uses paths.root.
    3: the model was not blessed. 130: Ctrl-C. 1: anything else.
    """
    from pipeline import locks, monitor, nodes, places, summary

    settings = _load(config)
    places.check_places(settings)
    lock = locks.lock_root(settings.paths.root)
    folder = places.log_folder(settings)
    places.make_folder("paths.root", folder)
    log = Path(folder) / time.strftime("%Y%m%d-%H%M%S.log")
    _out.print(Text.assemble((settings.name, "bold"), f"  log: {log}"), soft_wrap=True)
    watched = monitor.run_watched(_out, log, names=nodes.node_ids(settings), lock=lock)
    raise typer.Exit(summary.show(_out, settings, watched, log))


@app.command()
def predict(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Reviews; without any, lines of standard input.")
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Ask the last pushed model about reviews; lines are answered as they come.

    Exit code 2: no model, no review, or one that is not UTF-8; the others are answered all the
    same. 130: interrupted.
    """
    try:
        raise typer.Exit(_predict(texts or [], _load(config)))
    except KeyboardInterrupt:
        raise typer.Exit(exit_codes.INTERRUPTED) from None


def _predict(texts: list[str], settings: PipelineConfig) -> int:
    from serving.answers import answer, read_arguments, read_lines
    from serving.predictor import NoModelError, Predictor, latest_model

    serving = settings.paths.serving
    if serving.startswith("gs://"):
        find_credentials("paths.serving", serving)
    try:
        with _silent_stderr():
            folder = latest_model(serving)
    except (NoModelError, OSError) as error:
        raise _stop(str(error), exit_codes.BAD_INPUT) from None
    batches = read_arguments(texts) if texts else read_lines(sys.stdin)
    first = next(batches, None)
    if not first:
        raise _stop(
            "no review given, neither as argument nor on standard input", exit_codes.BAD_INPUT
        )
    with _silent_stderr():
        predictor = Predictor(folder)

    def predict(reviews: list[bytes]) -> list[Prediction]:
        with _silent_stderr():
            return predictor.predict(reviews)

    try:
        # Not through Rich, which would turn the tabs that programs look for into spaces.
        unusable = answer(
            chain([first], batches),
            predict,
            sys.stdout.buffer,
            report=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except BrokenPipeError:
        # `| head` has what it wants. Python would flush what is left once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_codes.PUSHED
    return exit_codes.BAD_INPUT if unusable else exit_codes.PUSHED


@app.command("compile")
def compile_(
    target: TargetOption,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The file [default: NAME.json for vertex, NAME.yaml for kubeflow].",
            callback=on_this_machine,
        ),
    ] = None,
    config: ConfigOption = None,
) -> None:
    """Compile the pipeline for a cluster: PipelineJob JSON (vertex), PipelineSpec YAML (kubeflow).

    Exit code 2: a setting is missing for that target, or wrong.
    """
    settings = _load(config)
    file = output or Path(f"{settings.name}{SUFFIXES[target]}")
    _compile(settings, target, file)
    _out.print(
        f"{file}  for {target}; next: amazon-reviews submit --target {target}", soft_wrap=True
    )


@app.command()
def submit(
    target: TargetOption,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Another value for a parameter of the run: input_base, epochs, strategy, "
            "min_accuracy. May be repeated.",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the run; the exit code is its result.")
    ] = False,
    config: ConfigOption = None,
) -> None:
    """Compile the pipeline and run it on a cluster; prints the run's link.

    Exit code 0: submitted, or with --wait succeeded. 2: a setting is missing or wrong. 1: anything
    else.
    """
    from kubeflow.submit import check_submission, read_parameters
    from kubeflow.submit import submit as submit_package

    settings = _load(config)
    parameters = read_parameters(parameter or [])
    check_submission(settings, target)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / f"{settings.name}{SUFFIXES[target]}"
        _compile(settings, target, package)
        code = submit_package(
            settings,
            target,
            package,
            parameters,
            wait=wait,
            say=lambda line: _out.print(line, soft_wrap=True),
        )
    raise typer.Exit(code)


@data_app.command("fetch")
def data_fetch(config: ConfigOption = None) -> None:
    """Bring the Kaggle set (4,000,000 reviews, 492 MB) into data.input_base.

    Exit code 2: data.input_base cannot be written to. 1: the data could not be brought.
    """
    from pipeline.kaggle import FetchError, fetch

    settings = _load(config)
    if settings.data.input_base is None:
        raise _stop(
            "data.input_base is not set, so there is no folder to put the data in; try "
            "`amazon-reviews data fetch --config amazon`",
            exit_codes.BAD_INPUT,
        )
    try:
        files = fetch(
            settings.data.input_base,
            say=lambda line: _out.print(line, soft_wrap=True, markup=False),
        )
    except FetchError as error:
        raise _stop(str(error), exit_codes.FAILED) from None
    _out.print(
        f"{len(files)} files in {settings.data.input_base}; next: amazon-reviews run",
        soft_wrap=True,
    )


def _compile(settings: PipelineConfig, target: ClusterTarget, file: Path) -> None:
    check_target(settings, target)
    with _silent_stderr():
        from kubeflow.compile import compile_pipeline
        from pipeline.preflight import check_hyperparameters

        check_hyperparameters(settings)
        compile_pipeline(settings, target, file)


def _load(source: str | None) -> PipelineConfig:
    """Loads the settings and makes them those of every process that is started from here."""
    settings = load_config(source)
    if source:
        os.environ[CONFIG_VARIABLE] = source
    return settings


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Keeps TensorFlow from telling about missing GPUs and old Pythons; no setting of its own does
    on every version. Exceptions still come through."""
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _stop(message: str, code: int) -> typer.Exit:
    print(message, file=sys.stderr)
    return typer.Exit(code)


def main() -> None:
    """Entry point of the console script: settings and input errors are one line, exit code 2."""
    try:
        app()
    except (ConfigError, InputError) as error:
        print(error, file=sys.stderr)
        sys.exit(exit_codes.BAD_INPUT)
