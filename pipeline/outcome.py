"""What a finished run came to, read from ML Metadata and the artifacts."""

from __future__ import annotations

import dataclasses

import tensorflow_model_analysis as tfma
from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.orchestration import metadata

from pipeline.config import PipelineConfig
from pipeline.evaluation import ACCURACY, CANDIDATE
from pipeline.metadata import connection_config


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of one run, in numbers a person asks for.

    Attributes:
      lines: name of a count (`examples_train`, `neutral`, `rejected_bad_label`, …) -> lines.
      accuracy, auc: of the candidate on the whole test split.
      blessed: whether the Evaluator found the model good enough.
      reasons: why it did not.
      pushed_to: folder of the pushed model; empty when nothing was pushed.
    """

    lines: dict[str, int]
    accuracy: float
    auc: float
    blessed: bool
    reasons: list[str]
    pushed_to: str


def latest_outcome(config: PipelineConfig) -> Outcome:
    """The outcome of the latest run of `config`'s pipeline, which must have reached its end."""
    with metadata.Metadata(connection_config(config.paths.metadata)) as handle:
        outputs = _outputs_of_latest_run(handle.store, config.name)
    rejected = outputs["ReviewExampleGen"]["rejected"]
    blessing = outputs["Evaluator"]["blessing"]
    pushed = outputs.get("Pusher", {}).get("pushed_model")
    evaluation = outputs["Evaluator"]["evaluation"].uri
    metrics = _overall_metrics(evaluation)
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
        pushed_to=(
            pushed.custom_properties["pushed_destination"].string_value
            if pushed and pushed.custom_properties["pushed"].int_value
            else ""
        ),
    )


def _outputs_of_latest_run(
    store: MetadataStore, pipeline: str
) -> dict[str, dict[str, mlmd.Artifact]]:
    """Component class -> output key -> artifact, of the pipeline's newest run."""
    parent = store.get_context_by_type_and_name("pipeline", pipeline)
    runs = store.get_children_contexts_by_context(parent.id)
    run_type = store.get_context_type("pipeline_run").id
    run = max((r for r in runs if r.type_id == run_type), key=lambda r: r.id)
    executions = store.get_executions_by_context(run.id)
    types = store.get_execution_types_by_id([e.type_id for e in executions])
    events = store.get_events_by_execution_ids([e.id for e in executions])
    artifacts = {
        artifact.id: artifact
        for artifact in store.get_artifacts_by_id([e.artifact_id for e in events])
    }
    outputs: dict[str, dict[str, mlmd.Artifact]] = {}
    for execution, kind in zip(executions, types, strict=True):
        component = kind.name.rpartition(".")[2]
        outputs[component] = {
            event.path.steps[0].key: artifacts[event.artifact_id]
            for event in events
            if event.execution_id == execution.id and event.type == mlmd.Event.OUTPUT
        }
    return outputs


def _overall_metrics(evaluation: str) -> dict[str, float]:
    """Metric -> value of the candidate on all examples; a lone model has no name in TFMA."""
    for of_slice in tfma.load_metrics(evaluation):
        if not of_slice.slice_key.single_slice_keys:
            return {
                item.key.name: item.value.double_value.value
                for item in of_slice.metric_keys_and_values
                if item.key.model_name in ("", CANDIDATE) and not item.key.is_diff
            }
    raise ValueError(f"{evaluation}: no overall slice in the evaluation")


def _failures(evaluation: str) -> list[str]:
    result = tfma.load_validation_result(evaluation)
    reasons = []
    for slice_result in result.metric_validations_per_slice:
        for failure in slice_result.failures:
            name = failure.metric_key.name
            seen = failure.metric_value.double_value.value
            threshold = failure.metric_threshold
            if failure.metric_key.is_diff:
                allowed = -threshold.change_threshold.absolute.value
                reasons.append(
                    f"{name} is {-seen:.4f} below that of the latest blessed model, "
                    f"evaluation.max_accuracy_drop allows {allowed:g}"
                )
            else:
                lowest = threshold.value_threshold.lower_bound.value
                reasons.append(f"{name} is {seen:.4f}, evaluation.min_accuracy asks for {lowest:g}")
    return reasons
