"""`amazon-reviews watch`: whether the served model still fits new reviews."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.options import ConfigOption, SetOption
from core import exit_codes
from core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from preprocessing.labels import Labels
    from serving.drift.compare import Comparison, Figure
    from serving.drift.new_reviews import NewReviews

app = typer.Typer()


@app.command(epilog="Example: amazon-reviews watch --input new/ --json")
def watch(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES", help="Further files of --input.", show_default=False),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NEW",
            help="Files, folders or globs of new reviews in any format that a training reads, with "
            "or without labels. May be repeated.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one line of JSON.")
    ] = False,
    then: Annotated[
        Literal["run"] | None,
        typer.Option("--then", help="After an alarm, start a run with the same settings."),
    ] = None,
    config: ConfigOption = None,
    overrides: SetOption = None,
) -> None:
    """Compare new reviews with those that the served model was evaluated on.

    The figures are the scores, the words, the answers that the model is unsure of, and the
    estimated accuracy; with labels also the accuracy and the shares of the labels. At most 20,000
    reviews are compared, drawn at random. All tests together raise a false alarm in at most 5 % of
    the comparisons.

    Exit code 0: no alarm. 4: an alarm. 2: there is no model, it was pushed without the reviews to
    compare with, or the new ones cannot be read. With --then run, an alarm ends with the exit code
    of the run.
    """  # noqa: DOC501
    from cli.console import json_text, print_line, quiet_tensorflow, silent_stderr
    from cli.models import last_pushed_model
    from pipeline.config import load_config

    settings = load_config(config, overrides or ())
    words = [*(inputs or ()), *(files or ())]
    if not inputs or "" in words:
        raise InputError("--input: required; name the files or the folder of the new reviews")
    quiet_tensorflow()
    with silent_stderr():
        from core.processes import large_imports
        from preprocessing.labels import model_labels

        model = last_pushed_model(settings)
        labels = model_labels(model)
        # The imports take seconds, and a missing model is reported before them.
        with large_imports():
            from pipeline.inputs import read_options
            from serving.drift import reference
            from serving.drift.compare import compare
            from serving.drift.new_reviews import read_new_reviews, score
            from serving.predict_text import load_predict_text

        try:
            known = reference.read(model, labels)
        except OSError as error:
            raise ConfigError(f"paths.serving: {model} cannot be read: {error}") from None
        new = read_new_reviews(words, read_options(settings), labels)
        scored = score(new, load_predict_text(model), labels)
        found = compare(known, scored, labels, settings.evaluation.max_accuracy_drop)
    if as_json:
        print(json_text(_content(found, new, model)), flush=True)
    else:
        for line in _lines(found, new, model, labels):
            print_line(line)
    if not found.is_alarm:
        return
    if then != "run":
        raise typer.Exit(exit_codes.DRIFT)
    from cli.run import run

    # The only line on standard output is the JSON of the comparison.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        run(config, overrides)


def _content(found: Comparison, new: NewReviews, model: str) -> dict[str, Any]:
    """Return the result for JSON."""
    return {
        "is_alarm": found.is_alarm,
        "model": model,
        "total": new.total,
        "rejected": new.rejected,
        "unlabelled": new.unlabelled,
        "new_classes": list(new.new_classes),
        **found.to_json(),
    }


def _lines(found: Comparison, new: NewReviews, model: str, labels: Labels) -> list[str]:
    """Return the lines of the result."""
    from preprocessing.reading.listing import listed
    from preprocessing.reading.records import shown_reasons

    nouns = labels.nouns
    drawn = "" if found.reviews == new.total else f", drawn from {new.total:,}"
    lines = [f"model     {model}"]
    lines += [f"read as   {way}" for way in new.reading]
    lines.append(
        f"compared  {found.reviews:,} new {nouns}{drawn} with {found.reference_reviews:,} of the "
        "test split"
    )
    if new.rejected:
        lines.append(f"rejected  lines that cannot be read: {shown_reasons(new.rejected)}")
    if new.new_classes:
        lines.append(
            f"labels    no class of the model: {listed(new.new_classes)}; every answer for such "
            f"{nouns} is wrong"
        )
    if new.unlabelled:
        not_read = "not read: " if new.labels is None else ""
        lines.append(f"labels    {not_read}{new.unlabelled}")
    lines += [_line(figure) for figure in found.figures]
    for title, shown in (
        ("new words", [each for each in found.ngrams if each.new > each.old]),
        ("old words", [each for each in found.ngrams if each.new < each.old]),
    ):
        if shown:
            shares = (f"{each.ngram} ({each.new:.1%}, before {each.old:.1%})" for each in shown)
            lines.append(f"{title} {', '.join(shares)}")
    lines.append(f"result    {found.sentence}")
    return lines


def _line(figure: Figure) -> str:
    tested = f", {figure.p_text}" if figure.p_text else ""
    changed = ": changed" if figure.is_alarm else ""
    interval = " to ".join(figure.interval_texts)
    return f"{figure.name:<9} {figure.sentence} (95 %: {interval}{tested}){changed}"
