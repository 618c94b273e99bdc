"""`amazon-reviews predict`: predictions for single texts, or for files of texts."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import ConfigOption, SetOption
from core import exit_codes, processes
from core.errors import InputError

if TYPE_CHECKING:
    from pipeline.config import PipelineConfig
    from serving.answers import Prediction
    from serving.predict_text import PredictText

app = typer.Typer()

TEXT = "TEXT"
"""The name of the argument of `predict`, which may be blank."""


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
        from cli.scoring import score

        # A shell expands a glob to several words. The option takes the first one, and the others
        # are arguments.
        files = [*(inputs or ()), *(texts or ())]
        with processes.signals_to(_interrupt, signal.SIGTERM):
            is_complete = score(files, output, id, probabilities, settings)
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
