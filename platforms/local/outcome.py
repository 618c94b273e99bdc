"""The outcome of a finished run, from ML Metadata and the artifacts."""

from __future__ import annotations

import dataclasses
import json
import os

from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.dsl.io import fileio
from tfx.orchestration import metadata

from components.evaluator.files import read
from components.evaluator.metrics import ACCURACY, AUC, METRICS, constant_answer
from components.properties import CAUSE_PROPERTY, READING_PROPERTY
from components.run_report.component import REPORT_FILE
from components.run_report.history import read_runs
from pipeline.nodes import REPORT, SERVING_CHECK
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

    Raises:
      NoOutcomeError: ML Metadata lacks an output of the run, or its pushed model was deleted.
    """
    runs = read_runs(handle.store, run_id)

    def output(node: str, key: str) -> mlmd.Artifact:
        try:
            return runs[0].outputs[node][key]
        except LookupError:
            raise NoOutcomeError(
                f"ML Metadata has no {key} of {node} for the run {run_id}"
            ) from None

    read_lines = output("ReviewExampleGen", "rejected").custom_properties
    evaluation = output("Evaluator", "evaluation").uri
    refused = output(SERVING_CHECK, "blessing").custom_properties[CAUSE_PROPERTY].string_value
    report = os.path.join(output(REPORT, "report").uri, REPORT_FILE)
    found = runs[0]
    if found.pushed_to and not is_complete(found.pushed_to):
        raise NoOutcomeError(
            f"the model pushed to {found.pushed_to} was deleted; run again to push it"
        )
    results = read(evaluation)
    own, base = results.candidate, results.baseline or results.candidate
    return Outcome(
        lines={
            name: value.int_value
            for name, value in sorted(read_lines.items())
            if value.HasField("int_value")
        },
        reading=read_lines[READING_PROPERTY].string_value.splitlines(),
        accuracy=ACCURACY.value(own),
        auc=AUC.value(own),
        constant_answer=constant_answer(own),
        baseline=found.baseline,
        accuracy_change=ACCURACY.value(own) - ACCURACY.value(base),
        blessed=bool(found.blessed),
        reasons=[
            check.sentence for check in results.checks() if not (found.blessed or check.passed)
        ],
        refused=refused,
        pushed_to=found.pushed_to,
        strategy=_strategy(found.uris.get("model_run", "")),
        metrics={metric.title: metric.value(own) for metric in METRICS if metric.title},
        report=report,
    )


def _strategy(model_run: str) -> str:
    path = os.path.join(model_run, SUMMARY_FILE)
    # The file is missing if the disk was full at the end of the training.
    if not fileio.exists(path):
        return ""
    with fileio.open(path) as file:
        return str(json.loads(file.read())["strategy"])
