"""The content of a report, which is collected from the artifacts of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf
from absl import logging
from tfx.utils import path_utils

from components.evaluator import files, new_span
from components.run_report import input_data
from components.run_report.changes import Changes, what_changed
from components.run_report.earlier import Earlier
from components.run_report.history import Run
from components.run_report.mistakes import ExplainedMistake, explain
from components.serving_check.results import CheckResults, read_check
from core.errors import cause
from core.training_summary import TrainingSummary, read_summary
from preprocessing.labels import Labels, read_labels
from serving.drift.compare import Comparison, NotCompared

_T = TypeVar("_T")
_NO_RUNS = Earlier()


class Content(NamedTuple):
    """The content of a report. A part that the run does not have is None or empty.

    Attributes:
      run: the run.
      input: the lines of its files.
      labels: the classes, which an evaluation has.
      balance: split -> class -> its fraction.
      anomalies: a line for each anomaly; None if the data was not validated.
      training: the summary of the training.
      evaluation: the counts of the candidate and the baseline.
      mistakes: the most confident mistakes, with the effects of their words.
      check: the results of the serving check.
      problems: a line for each part that cannot be read.
      confusion_texts: the result of `files.read_confusions`.
      changes: what changed since the served model; None if no other model was served.
      recent: the last runs before this one, the newest first.
      drift: how the newest span differs from that of the served model, or why they were not
        compared; None without spans or without a served model.
      model_bytes: the size of the SavedModel; None if it is unknown.
    """

    run: Run
    input: input_data.InputData | None
    labels: Labels | None
    balance: Mapping[str, Mapping[str, float]]
    anomalies: list[str] | None
    training: TrainingSummary | None
    evaluation: files.Results | None
    mistakes: Sequence[ExplainedMistake]
    check: CheckResults | None
    problems: list[str]
    confusion_texts: files.ConfusedReviews = {}
    changes: Changes | None = None
    recent: Sequence[Run] = ()
    drift: Comparison | NotCompared | None = None
    model_bytes: int | None = None

    @property
    def comparison(self) -> Comparison | None:
        """The comparison of the newest span; None if it was not compared."""
        return self.drift if isinstance(self.drift, Comparison) else None


def collect(run: Run, model: str | None = None, earlier: Earlier = _NO_RUNS) -> Content:
    """Return the content of a report, from the artifacts of a run.

    A part that cannot be read is left out and named in `problems`, because a failed run has a
    report too. The function raises no error for a damaged artifact.

    Args:
      run: the run.
      model: the folder of the SavedModel of the run; None: the output of the Trainer.
      earlier: the runs before it.
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
    explained, answers = None, None
    if evaluation:
        labels: Labels | None = evaluation.labels
        stored = read("mistakes", files.read_mistakes, uri("evaluation"))
        explained = read("effects of words", explain, model, stored)
        answers = read("changed answers", files.read_changed, uri("evaluation"))
    else:
        labels = read("classes", read_labels, uri("examples"))
    return Content(
        run=run,
        input=read("input", input_data.read_input, uri("rejected")),
        labels=labels,
        balance=read("class balance", input_data.read_balance, uri("statistics"), labels) or {},
        anomalies=read("anomalies", input_data.read_all_anomalies, uri("anomalies")),
        training=read("training figures", read_summary, uri("model_run")),
        evaluation=evaluation,
        mistakes=explained or [],
        check=read("serving check", read_check, uri("check")),
        problems=problems,
        confusion_texts=read("confusions", files.read_confusions, uri("evaluation")) or {},
        changes=_changes(run, earlier, evaluation, answers),
        recent=earlier.recent,
        drift=read("comparison of the spans", new_span.read, uri("evaluation")),
        model_bytes=read("size of the model", _folder_bytes, model),
    )


def _changes(
    run: Run, earlier: Earlier, results: files.Results | None, answers: files.Changed | None
) -> Changes | None:
    """Return what changed since the served model; None if there is no other one."""
    if not run.baseline:
        return None
    names = (run.baseline, "this model")
    return what_changed(earlier.served, run, results, answers, names, earlier.recorded)


def _folder_bytes(folder: str) -> int | None:
    """Return the size of all files in a folder, local or remote; None if it has none."""
    paths = [
        os.path.join(where, name) for where, _, names in tf.io.gfile.walk(folder) for name in names
    ]
    return sum(tf.io.gfile.stat(path).length for path in paths) or None
