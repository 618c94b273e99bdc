"""The outcome of a finished run, from ML Metadata and the artifacts."""

from __future__ import annotations

import dataclasses

import tensorflow_model_analysis as tfma
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.orchestration import metadata

from components.evaluator.metrics import ACCURACY, overall_metrics
from components.serving_blessing import CAUSE_PROPERTY
from pipeline.nodes import PUSHER, SERVING_CHECK
from platforms.local.pushed_models import destination
from serving.versions import is_complete

_FINISHED = (mlmd.Execution.COMPLETE, mlmd.Execution.CACHED)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one run.

    Attributes:
      lines: name of a count (`examples_train`, `neutral`, `rejected_bad_label`, …) -> lines.
      accuracy, auc: metrics of the candidate on the whole test split.
      blessed: True if the Evaluator blessed the model.
      reasons: the thresholds that the model did not reach; empty if it is blessed.
      refused: the reason for which the serving check refused the model; empty if it passed.
      pushed_to: folder of the pushed model; empty if no model was pushed.
    """

    lines: dict[str, int]
    accuracy: float
    auc: float
    blessed: bool
    reasons: list[str]
    refused: str
    pushed_to: str


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
    metrics = overall_metrics(evaluation)
    blessed = blessing.custom_properties["blessed"].int_value == 1
    return Outcome(
        lines={
            name: value.int_value
            for name, value in sorted(rejected.custom_properties.items())
            if value.HasField("int_value")
        },
        accuracy=metrics[ACCURACY],
        auc=metrics["auc"],
        blessed=blessed,
        reasons=[] if blessed else _failures(evaluation),
        refused=check[CAUSE_PROPERTY].string_value,
        pushed_to=pushed_to,
    )


class _Outputs:
    """The output artifacts of one run's finished executions, by component class and key."""

    def __init__(self, store: MetadataStore, run_id: str):
        self._run_id = run_id
        self._artifacts: dict[str, dict[str, mlmd.Artifact]] = {}
        run = store.get_context_by_type_and_name("pipeline_run", run_id)
        executions = [
            execution
            for execution in (store.get_executions_by_context(run.id) if run else [])
            if execution.last_known_state in _FINISHED
        ]
        if not executions:
            return
        # Two nodes may have the same type, so there are fewer types than executions.
        names = {
            kind.id: kind.name.rpartition(".")[2]
            for kind in store.get_execution_types_by_id({e.type_id for e in executions})
        }
        events = store.get_events_by_execution_ids([e.id for e in executions])
        artifacts = {
            artifact.id: artifact
            for artifact in store.get_artifacts_by_id([e.artifact_id for e in events])
        }
        for execution in executions:
            self._artifacts[names[execution.type_id]] = {
                event.path.steps[0].key: artifacts[event.artifact_id]
                for event in events
                if event.execution_id == execution.id and event.type == mlmd.Event.OUTPUT
            }

    def __contains__(self, component: str) -> bool:
        return component in self._artifacts

    def one(self, component: str, key: str) -> mlmd.Artifact:
        try:
            return self._artifacts[component][key]
        except KeyError:
            raise NoOutcomeError(
                f"ML Metadata has no {key} of {component} for the run {self._run_id}"
            ) from None


def _failures(evaluation: str) -> list[str]:
    result = tfma.load_validation_result(evaluation)
    reasons = []
    for slice_result in result.metric_validations_per_slice:
        for failure in slice_result.failures:
            name = failure.metric_key.name
            value = failure.metric_value.double_value.value
            threshold = failure.metric_threshold
            if failure.metric_key.is_diff:
                allowed = -threshold.change_threshold.absolute.value
                reasons.append(
                    f"{name} is {-value:.4f} below that of the latest blessed model, "
                    f"evaluation.max_accuracy_drop allows {allowed:g}"
                )
            else:
                lowest = threshold.value_threshold.lower_bound.value
                reasons.append(
                    f"{name} is {value:.4f}, evaluation.min_accuracy requires {lowest:g}"
                )
    return reasons
