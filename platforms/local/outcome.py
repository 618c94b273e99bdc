"""The outcome of a finished run, from ML Metadata and the artifacts."""

from __future__ import annotations

import dataclasses
import json
import os

from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.dsl.io import fileio
from tfx.orchestration import metadata

from components.evaluator.files import read
from components.evaluator.metrics import ACCURACY, AUC, METRICS, constant_answer
from components.properties import (
    BASELINE_PROPERTY,
    CAUSE_PROPERTY,
    PUSHED_DESTINATION,
    READING_PROPERTY,
)
from components.run_report.component import REPORT_FILE
from components.run_report.history import read_runs
from pipeline.nodes import PUSHER, REPORT, SERVING_CHECK, TRAINER
from serving.versions import is_complete
from trainer_module.settings import SUMMARY_FILE


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one run.

    Attributes:
      lines: name of a count (`examples_train`, `neutral`, `rejected_bad_label`, …) -> lines.
      reading: the format, the columns and the scale of the files, in a few lines.
      accuracy, auc: metrics of the candidate on the whole test split.
      constant_answer: the accuracy of a constant answer there, as a clause.
      baseline: the name of the model that the candidate was compared with; empty if there was none.
      accuracy_change: the accuracy minus that of the baseline; 0 if there was none.
      blessed: True if the Evaluator blessed the model.
      reasons: the thresholds that the model did not reach; empty if it is blessed.
      refused: the reason for which the serving check refused the model; empty if it passed.
      pushed_to: folder of the pushed model; empty if no model was pushed.
      report: file of the run's report.
      strategy: class of the strategy that trained; empty if it is unknown.
      metrics: title -> value of every metric of the candidate.
    """

    lines: dict[str, int]
    reading: list[str]
    accuracy: float
    auc: float
    constant_answer: str
    baseline: str
    accuracy_change: float
    blessed: bool
    reasons: list[str]
    refused: str
    pushed_to: str
    report: str
    strategy: str
    metrics: dict[str, float] = dataclasses.field(default_factory=dict)


class NoOutcomeError(RuntimeError):
    """A run without a result; the message is one line."""


def run_outcome(handle: metadata.Metadata, run_id: str) -> Outcome:
    """Return the outcome of one run, which must have finished.

    Args:
      handle: an open connection to the ML Metadata of the run.
      run_id: the name of the run's `pipeline_run` context; ML Metadata may contain later runs.

    Raises:
      NoOutcomeError: ML Metadata lacks an output of the run, or its pushed model was deleted.
    """
    outputs = _Outputs(handle.store, run_id)
    rejected = outputs.one("ReviewExampleGen", "rejected")
    blessing = outputs.one("Evaluator", "blessing")
    check = outputs.one(SERVING_CHECK, "blessing").custom_properties
    evaluation = outputs.one("Evaluator", "evaluation").uri
    pushed_to = destination(outputs.one(PUSHER, "pushed_model")) if PUSHER in outputs else ""
    if pushed_to and not is_complete(pushed_to):
        raise NoOutcomeError(f"the model pushed to {pushed_to} was deleted; run again to push it")
    results = read(evaluation)
    own, base = results.candidate, results.baseline or results.candidate
    blessed = blessing.custom_properties["blessed"].int_value == 1
    baseline = blessing.custom_properties[BASELINE_PROPERTY].string_value
    return Outcome(
        lines={
            name: value.int_value
            for name, value in sorted(rejected.custom_properties.items())
            if value.HasField("int_value")
        },
        reading=rejected.custom_properties[READING_PROPERTY].string_value.splitlines(),
        accuracy=ACCURACY.value(own),
        auc=AUC.value(own),
        constant_answer=constant_answer(own),
        baseline=baseline,
        accuracy_change=ACCURACY.value(own) - ACCURACY.value(base),
        blessed=blessed,
        reasons=[check.sentence for check in results.checks() if not (blessed or check.passed)],
        refused=check[CAUSE_PROPERTY].string_value,
        pushed_to=pushed_to,
        strategy=_strategy(outputs.one(TRAINER, "model_run").uri),
        metrics={metric.title: metric.value(own) for metric in METRICS if metric.title},
        report=os.path.join(outputs.one(REPORT, "report").uri, REPORT_FILE),
    )


def destination(pushed: mlmd.Artifact) -> str:
    """Return the folder of a pushed model; empty if no model was pushed."""
    values = dict(pushed.custom_properties)
    if "pushed" not in values or values["pushed"].int_value != 1:
        return ""
    folder: str = values[PUSHED_DESTINATION].string_value
    return folder


class _Outputs:
    """The output artifacts of one run's finished components, by node id and key."""

    def __init__(self, store: MetadataStore, run_id: str):
        self._run_id = run_id
        runs = read_runs(store, run_id)
        self._artifacts = runs[0].outputs if runs else {}

    def __contains__(self, node: str) -> bool:
        return node in self._artifacts

    def one(self, node: str, key: str) -> mlmd.Artifact:
        try:
            return self._artifacts[node][key]
        except KeyError:
            raise NoOutcomeError(
                f"ML Metadata has no {key} of {node} for the run {self._run_id}"
            ) from None


def _strategy(model_run: str) -> str:
    path = os.path.join(model_run, SUMMARY_FILE)
    # The file is missing if the disk was full at the end of the training.
    if not fileio.exists(path):
        return ""
    with fileio.open(path) as file:
        return str(json.loads(file.read())["strategy"])
