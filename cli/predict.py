"""`amazon-reviews predict`."""

from __future__ import annotations

import os
import sys
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.options import ConfigOption, SetOption, make_app

if TYPE_CHECKING:
    from serving.predictor import Prediction

app = make_app()


@app.command()
def predict(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Reviews \\[default: the lines of standard input].")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="Files, folders or globs of reviews in any format that a training reads; `-` is "
            "standard input. May be repeated; further FILES may follow it.",
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Predictions for --input: a .csv, .jsonl or .parquet file; `-` is stdout.",
        ),
    ] = None,
    format: Annotated[
        Literal["csv", "jsonl", "parquet"] | None,
        typer.Option("--format", help="Format of `--output -` \\[default: csv]."),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Print the last pushed model's label and probability for each review.

    Each line of standard input is classified as it arrives. Exit code 2: there is no model or no
    review, or a review is not UTF-8 (the others are classified). 130: interrupted.

    With --input and --output, files are scored: the output has the file, position, probability and
    label of each review. Lines that cannot be read are in FILE.rejected.jsonl, and the exit code is
    2. The output appears when it is complete; after a kill the same command resumes.
    """
    from cli.console import silent_stderr
    from cli.model import last_pushed_model
    from core import exit_codes
    from core.errors import InputError
    from core.imports import large_imports
    from pipeline.config import load_config
    from serving.answers import answer, read_arguments, read_lines
    from serving.rest.client import find_server

    settings = load_config(config, overrides or ())
    if inputs or output or format:
        from cli.score import score

        # A shell expands a glob to several words, of which the option takes the first.
        if not score([*(inputs or ()), *(texts or ())], output, format, settings):
            raise typer.Exit(exit_codes.BAD_INPUT)
        return
    # TensorFlow logs while it is imported, before it can be configured.
    with silent_stderr():
        from serving.predictor import Predictor

        folder = last_pushed_model(settings)
    batches = read_arguments(texts) if texts else read_lines(sys.stdin)
    first = next(batches, None)
    if not first:
        raise InputError("no review given: pass reviews as arguments or on standard input")

    def load() -> Predictor:
        with silent_stderr(), large_imports():
            return Predictor(folder)

    predictor = find_server(settings.server, folder, load) if texts else load()

    def predictions(reviews: list[bytes]) -> list[Prediction]:
        with silent_stderr():
            return predictor.predict(reviews)

    try:
        # Rich would replace the tabs between the columns by spaces.
        unusable = answer(
            chain([first], batches),
            predictions,
            sys.stdout.buffer,
            report=lambda line: print(line, file=sys.stderr, flush=True),
        )
    except BrokenPipeError:
        # The reader of the output, such as `head`, has closed the pipe. Python flushes the rest of
        # the buffer when it exits, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if unusable:
        raise typer.Exit(exit_codes.BAD_INPUT)
