"""The HTML page of a report: the content that is collected from a run, and its rendering."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jinja2
from absl import logging
from tfx.utils import path_utils

from components.evaluator import files
from components.evaluator.counts import Counts
from components.evaluator.metrics import (
    ACCURACY,
    constant_answer,
    key_figures,
    reviews_of_class,
)
from components.properties import CHECK_FILE
from components.run_report import input_data
from components.run_report.charts import draw
from components.run_report.classes import class_rows, shown_confusions
from components.run_report.history import UNFINISHED, Run, describe_result
from core.errors import cause
from core.settings import flat_settings
from core.training_summary import read_summary
from preprocessing.labels import Labels, model_labels, read_labels
from serving.explain import Part, parts, variants
from serving.predict_text import load_predict_text

_T = TypeVar("_T")
_VERDICTS = {
    "failed": ("bad", "The run failed. {0.error}"),
    UNFINISHED: ("neutral", "The run did not evaluate a model."),
    "not blessed": ("bad", "The model is not blessed, and was not pushed."),
    "refused": ("bad", "The model is blessed, but failed the serving check. It was not pushed."),
    "pushed": ("good", "The model is blessed, and was pushed to {0.pushed_to}."),
    "blessed": ("neutral", "The model is blessed. It was not pushed."),
}
"""Result of a run -> CSS class, and a sentence with attributes of `Run` as placeholders."""


class Content(NamedTuple):
    """The content of a report. A part that the run does not have is None or empty.

    Attributes:
      run: the run.
      input: the lines of its files.
      labels: the classes, which an evaluation has.
      balance: split -> class -> its fraction.
      anomalies: a line for each anomaly; None if the data was not validated.
      training: the content of training.json.
      evaluation: the counts of the candidate and the baseline.
      mistakes: the content of mistakes.json, and the `parts` of each text with their effects.
      check: the content of check.json.
      problems: a line for each part that cannot be read.
      confusion_texts: the result of `files.read_confusions`.
    """

    run: Run
    input: input_data.InputData | None
    labels: Labels | None
    balance: Mapping[str, Mapping[str, float]]
    anomalies: list[str] | None
    training: Mapping[str, Any]
    evaluation: files.Results | None
    mistakes: list[dict[str, Any]]
    check: Mapping[str, Any] | None
    problems: list[str]
    confusion_texts: Mapping[tuple[int, int], Sequence[Mapping[str, Any]]] = {}


def collect(run: Run, model: str | None = None) -> Content:
    """Return the content of a report, from the artifacts of a run.

    A part that cannot be read is left out and named in `problems`, because a failed run has a
    report too. The function raises no error for a damaged artifact.

    Args:
      run: the run.
      model: the folder of the SavedModel of the run; None: the output of the Trainer.
    """
    problems: list[str] = []

    def read(what: str, function: Callable[..., _T], *given: Any) -> _T | None:
        if any(argument is None for argument in given):
            return None
        try:
            return function(*given)
        except Exception as error:
            # The libraries that read a damaged artifact raise many kinds of errors.
            logging.warning("The report has no %s: %s", what, error)
            problems.append(f"{what}: {cause(error)}")
            return None

    uri = run.uris.get
    if model is None and "model" in run.uris:
        model = path_utils.serving_model_path(run.uris["model"])
    evaluation = read("evaluation", files.read, uri("evaluation"))
    mistakes = None
    if evaluation:
        labels: Labels | None = evaluation.labels
        mistakes = read("mistakes", explain, uri("evaluation"), model)
    else:
        labels = read("classes", read_labels, uri("examples"))
    return Content(
        run=run,
        input=read("input", input_data.read_input, uri("rejected")),
        labels=labels,
        balance=read("class balance", input_data.read_balance, uri("statistics"), labels) or {},
        anomalies=read("anomalies", input_data.read_all_anomalies, uri("anomalies")),
        training=read("training figures", read_summary, uri("model_run")) or {},
        evaluation=evaluation,
        mistakes=mistakes or [],
        check=read("serving check", files.read_json, uri("check"), CHECK_FILE),
        problems=problems,
        confusion_texts=read("confusions", files.read_confusions, uri("evaluation")) or {},
    )


def render(content: Content) -> str:
    """Return a report as one HTML document that references no other file."""
    run, results = content.run, content.evaluation
    kind, sentence = _VERDICTS[result(content)]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("components.run_report", "templates"),
        # Reviews are untrusted, so markup in them is escaped.
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        **{"highlighted": highlighted, "number": _number, "figure": figure, "answer": answer},
        "ACCURACY": ACCURACY,
        **{"constant_answer": constant_answer, "line_columns": input_data.columns},
        "check_name": check_name,
    }
    return environment.get_template("report.html.j2").render(
        **content._asdict(),
        verdict=(kind, sentence.format(run)),
        started=run.started and time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(run.started)),
        seconds=sum(step.seconds for step in run.steps),
        settings=flat_settings(run.settings),
        own=results.candidate if results else None,
        metrics=key_figures(results.labels) if results else [],
        slices=slices(results) if results else [],
        charts=draw(content.training, results),
        words=f"{content.labels.noun}s" if content.labels else "texts",
        of_second_class=reviews_of_class(results.labels, 1) if results else "",
        has_golden=has_golden(content.check),
        class_rows=class_rows(results.candidate, results.labels) if results else [],
        confusions=shown_confusions(results, content.confusion_texts) if results else [],
    )


def slices(results: files.Results) -> list[tuple[str, Counts]]:
    """Return the name of each slice, and the counts of the candidate on it, in a sorted list."""
    names = [each for each in results.slices if each != files.WHOLE]
    names.sort(key=lambda each: (each[0], _first_number(each[1])))
    return [(" ".join(name), results.slices[name][files.CANDIDATE]) for name in names]


def explain(evaluation: str, model: str) -> list[dict[str, Any]]:
    """Return the mistakes that the Evaluator stored, with the effects of their words.

    Args:
      evaluation: URI of the evaluation.
      model: the folder of the SavedModel that was evaluated.

    Raises:
      InputError: the model is missing or incomplete.
      tfx.dsl.io.fileio.NotFoundError: the file of the mistakes was deleted.
      OSError, ValueError, tensorflow.errors.OpError: the model or the file is damaged.
    """
    predict_text, labels = load_predict_text(model), model_labels(model)
    mistakes = files.read_mistakes(evaluation)
    for mistake in mistakes:
        scores = predict_text(variants(mistake["text"]))[labels.scores_name]
        probabilities = labels.shown(scores, mistake["predicted"])
        mistake["parts"] = parts(mistake["text"], probabilities.tolist())
    return mistakes


def _first_number(name: str) -> int:
    found = re.search(r"\d+", name)
    return int(found[0]) if found else 0


def highlighted(text: Sequence[Part]) -> list[tuple[str, float]]:
    """Return (text, effect) of each part of a review, with effects from -1 to 1.

    The effects are divided by the largest absolute effect in the review.
    """
    effects = [part.effect or 0.0 for part in text]
    largest = max(map(abs, effects), default=0.0) or 1.0
    return [(part.text, effect / largest) for part, effect in zip(text, effects, strict=True)]


def figure(value: float) -> str:
    """Return a measurement with a suitable number of digits, such as `0.8385` or `41,817`."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def answer(mistake: Mapping[str, Any], labels: Labels) -> str:
    """Return the answer of the model to a review.

    Args:
      mistake: an element of mistakes.json, or of `golden_mistakes` in check.json.
      labels: the classes.
    """
    probability, predicted = mistake["probability"], mistake.get("predicted")
    if predicted is None:  # Early checks lack it. They are all for two classes.
        [predicted] = labels.decide([probability]).tolist()
    # A check has names in place of labels.
    name = labels.names[predicted] if isinstance(predicted, int) else predicted
    return f"answered {name} with probability {labels.confidence(probability, name):.3f}"


def has_golden(check: Mapping[str, Any] | None) -> bool:
    """Return whether the serving check has sent golden sentences."""
    return any(each["name"].startswith("golden_") for each in (check or {}).get("results", []))


def check_name(name: str) -> str:
    """Return the name of a result of the serving check in words; classes keep their names."""
    golden = "golden_"
    if name.startswith(golden):
        return f"golden {name.removeprefix(golden)}"
    return name.replace("_", " ")


def _number(value: float, pattern: str = "{:.4f}") -> str:
    """Return a metric as text; `undefined` for NaN."""
    return pattern.format(value) if math.isfinite(value) else "undefined"


def result(content: Content) -> str:
    """Return the result of the run, a key of _VERDICTS."""
    run, check = content.run, content.check
    refused = check is not None and not check["passed"]
    return describe_result(run.error, run.blessed, refused=refused, pushed=bool(run.pushed_to))
