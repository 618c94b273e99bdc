"""`amazon-reviews predict`: predictions for single texts, or for files of texts."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import ConfigOption, SetOption
from core import exit_codes, processes, progress
from core.errors import InputError
from core.files import check_replaced, output_path, refuse_to_replace
from core.storage import is_url

if TYPE_CHECKING:
    from rich.status import Status

    from pipeline.config import PipelineConfig
    from serving.answers import Prediction
    from serving.predict_text import PredictText

app = typer.Typer()

TEXT = "TEXT"
"""The name of the argument of `predict`, which may be blank."""
_SECONDS_BETWEEN_LINES = 10.0
_FILES_SHOWN = 5


@app.command(epilog='Example: amazon-reviews predict "Great phone" "It broke after a day"')
def predict(
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar=TEXT,
            help="Texts \\[default: the lines of standard input]. Those that begin with - follow "
            "`--`.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each text.")
    ] = False,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Files, folders or globs of texts in any format that a training reads. May be "
            "repeated; further FILES may follow it.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Predictions for --input: a .csv, .jsonl or .parquet file.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="COLUMN", help="Column of --input that the output repeats as `id`."
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Write the probabilities of all classes for --input, a column for each class.",
        ),
    ] = False,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Print the last pushed model's class and its probability for each text.

    With two classes, such as negative and positive, the probability is that of the second one. With
    more it is that of the printed class.

    Each line of standard input is classified as it arrives; blank lines are skipped. Exit code 2:
    there is no model or no text, or an argument is blank or a text not UTF-8 (the others are
    classified). 130: interrupted.

    With --input and --output, files are scored: the output has the file, position, probability and
    class of each text. Lines that cannot be read are in FILE.rejected.jsonl, and the exit code is
    2. The output appears when it is complete, and replaces only an earlier output. After Ctrl-C,
    SIGTERM or a kill the same command resumes.
    """  # noqa: DOC501
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    if inputs or output is not None or id is not None or probabilities:
        if as_json:
            raise InputError(
                "--json: applies to single texts only; name a .jsonl file with --output"
            )
        # A shell expands a glob to several words. The option takes the first one, and the others
        # are arguments.
        files = [*(inputs or ()), *(texts or ())]
        with processes.signals_to(_interrupt, signal.SIGTERM):
            is_complete = _score(files, output, id, probabilities, settings)
    else:
        is_complete = _answer(texts, as_json, settings)
    if not is_complete:
        raise typer.Exit(exit_codes.BAD_INPUT)


def _interrupt(_: signal.Signals) -> None:
    """Treat SIGTERM like Ctrl-C, so that the command reports what is kept.

    Raises:
      KeyboardInterrupt: always.
    """
    raise KeyboardInterrupt


def _answer(texts: Sequence[str] | None, as_json: bool, settings: PipelineConfig) -> bool:
    """Print a prediction for each review; return whether all reviews were usable.

    Args:
      texts: the reviews; None for the lines of standard input.
      as_json: whether to print JSON objects.
      settings: the settings, which determine the model and the server.

    Raises:
      InputError: there is no review, or no complete model.
      ConfigError: `paths.serving` cannot be read.
      UserError: the model cannot be loaded.
      OSError: standard output cannot be written.
    """
    from cli.console import silent_stderr
    from cli.models import last_pushed_model
    from core.processes import large_imports
    from preprocessing.labels import model_labels
    from serving.answers import Prediction, answer, read_arguments, read_lines
    from serving.rest.client import ask_server

    with silent_stderr():
        folder = last_pushed_model(settings)
        labels = model_labels(folder)
    report = partial(print, file=sys.stderr, flush=True)
    for text in filter(os.path.exists, texts or ()):
        kind = "folder" if os.path.isdir(text) else "file"
        report(
            f"{text} is a {kind}, and here its name is classified; "
            f"`amazon-reviews predict --input {shlex.quote(text)} --output scores.csv` scores the "
            f"{labels.nouns} in it"
        )
    if not texts and sys.stdin and sys.stdin.isatty():
        report(f"type a {labels.noun} on each line; Ctrl-D ends the input")
    batches = read_arguments(texts) if texts else read_lines(sys.stdin)
    first = next(batches, None)
    if not first:
        raise InputError(
            f"no {labels.noun} given: pass {labels.nouns} as arguments or on standard input"
        )

    @cache
    def load() -> PredictText:
        # TensorFlow logs while it is imported, before it can be configured.
        with silent_stderr(), large_imports():
            from serving.predict_text import load_predict_text

            return load_predict_text(folder)

    def predictions(reviews: list[bytes]) -> list[Prediction]:
        found = ask_server(settings.server, folder, reviews) if texts else None
        if found is not None:
            return found
        with silent_stderr():
            outputs = load()(reviews)
        predicted = outputs["label"]
        shown = labels.shown(outputs[labels.scores_name], predicted)
        return list(map(Prediction, shown.tolist(), predicted.tolist()))

    try:
        # Rich would replace the tabs between the columns by spaces.
        out = sys.stdout.buffer
        return not answer(chain([first], batches), predictions, out, report, labels, as_json)
    except BrokenPipeError:
        # The reader of the output, such as `head`, has closed the pipe. Python flushes the rest of
        # the buffer when it exits, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True


def _score(
    inputs: Sequence[str],
    output: str | None,
    id: str | None,
    all_probabilities: bool,
    config: PipelineConfig,
) -> bool:
    """Score the reviews of files and print the counts; return whether every line was scored.

    Args:
      inputs: files, folders and globs.
      output: the value of --output.
      id: a column of the input that the output repeats.
      all_probabilities: whether the output contains the probabilities of all classes.
      config: the settings, which determine the model and the runner of Beam.

    Raises:
      InputError: an argument, a file or the model cannot be used.
      ConfigError: a setting does not fit the runner, or `paths.serving` cannot be read.
      UserError: the Beam pipeline failed.
      OSError: the output cannot be written.
      Interrupted: Ctrl-C or SIGTERM ended the scoring. The message has the number of units that are
        kept.
    """
    target = _check(inputs, output, id)
    # TensorFlow logs while it is imported and while it loads a model.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # Beam logs the traceback of an error before it raises the error.
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    from cli.console import error_console, print_line, silent_stderr
    from cli.models import last_pushed_model
    from core.processes import large_imports
    from platforms.flink import checks as flink
    from preprocessing.labels import model_labels

    files = [("--input", name) for name in inputs]
    outputs = [("--output", target), ("paths.serving", config.paths.serving)]
    flink.check_paths(config, [*files, *outputs])
    flink.check_local(config)
    with silent_stderr():
        model = last_pushed_model(config)
        noun = model_labels(model).noun
        # The imports take seconds, and a missing model is reported before them.
        with large_imports():
            from pipeline.inputs import read_options
            from platforms.beam import beam_args, check_beam_args
            from preprocessing.reading.records import shown_reasons
            from serving.batch.run import Interrupted, score_files

        check_beam_args(config)

    options = replace(read_options(config), id=id)
    start = time.monotonic()
    try:
        with ShownProgress(error_console().status("inspecting the input"), noun):
            args = beam_args(config)
            summary = score_files(inputs, target, model, options, args, all_probabilities)
    except Interrupted as error:
        print(f"interrupted: {error}; repeat the command to continue", file=sys.stderr)
        raise
    scored = noun if summary.reviews == 1 else f"{noun}s"
    print_line(f"{summary.reviews:,} {scored} scored in {time.monotonic() - start:.1f} s: {target}")
    if summary.resumed:
        print_line(f"units that were already finished: {summary.resumed}")
    for way in summary.reading:
        print_line(f"read as {way}")
    for line in summary.unused[:_FILES_SHOWN]:
        print_line(line)
    more = len(summary.unused) - _FILES_SHOWN
    if more > 0:
        print_line(f"further files without a usable line: {more}")
    if summary.rejected:
        reasons = shown_reasons(summary.rejected)
        print_line(f"rejected lines ({reasons}): {target}.rejected.jsonl")
    return not summary.rejected


def _check(inputs: Sequence[str], output: str | None, id: str | None) -> str:
    """Check the arguments; return the output as an absolute path or URL.

    Raises:
      InputError: an argument is missing, empty or cannot be used.
    """
    if "" in inputs:
        raise InputError("--input: a value is empty; give each file a name")
    if not inputs:
        raise InputError(
            "--output, --id and --probabilities require --input: files, folders or globs"
        )
    if output is None:
        raise InputError("--input requires --output: give a .csv, .jsonl or .parquet file")
    path = output if is_url(output) else output_path(output)
    if not path.lower().endswith((".csv", ".jsonl", ".parquet")):
        raise InputError(f"--output: {path} must be a .csv, .jsonl or .parquet file")
    if not is_url(path):
        _check_replaced(path)
    return path


def _check_replaced(path: str) -> None:
    """Check that an output replaces only an earlier output, and no reviews, by its first columns.

    Raises:
      ConfigError: the file contains something else, or cannot be read.
    """
    suffix = path.lower().rpartition(".")[2]
    begins = {"csv": "file,position,", "jsonl": '{"file": ', "parquet": "PAR1"}[suffix]
    kind = "an earlier output of predict"
    check_replaced(Path(path), begins, kind)
    if suffix != "parquet" or not os.path.exists(path) or not os.path.getsize(path):
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
    except (OSError, pa.ArrowException):
        names = []
    if names[:2] != ["file", "position"]:
        refuse_to_replace(Path(path), kind)


class ShownProgress(logging.Handler):
    """A context that shows the number of scored reviews, and the scored fraction of the input.

    A terminal shows one line, which changes. Any other output has a line every few seconds.
    """

    # Not rich.progress: in a file or a pipe it prints a single line, when everything is done.

    def __init__(self, status: Status, noun: str):
        """Create the context.

        Args:
          status: the line of a terminal, which the context starts and stops.
          noun: the word for a text, see `Labels.noun`.
        """
        super().__init__(logging.INFO)
        self._status = status
        self._noun = noun
        self._done: dict[str, dict[str, int]] = {progress.REVIEWS: {}, progress.BYTES: {}}
        self._bytes = 0
        self._last = time.monotonic()

    def __enter__(self) -> None:
        progress.LOGGER.addHandler(self)
        self._status.start()

    def __exit__(self, *_: object) -> None:
        progress.LOGGER.removeHandler(self)
        self._status.stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Update the shown progress with an event."""
        event = progress.decode(record)
        unit = event.unit
        if unit not in self._done:
            return  # Flink also reports its tasks.
        if unit == progress.BYTES:
            self._bytes = event.total or self._bytes
        self._done[unit][event.source] = event.done
        reviews, size = (sum(done.values()) for done in self._done.values())
        # The sizes of units are estimates.
        line = f"{reviews:,} {self._noun}s, {min(size / max(self._bytes, 1), 1):.0%}"
        self._status.update(line)
        # The bytes of a batch follow its reviews.
        is_line = unit == progress.BYTES and not self._status.console.is_terminal
        now = time.monotonic()
        if is_line and now - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = now
            self._status.console.print(line)
