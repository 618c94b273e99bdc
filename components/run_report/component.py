"""RunReport: one HTML page on the run, and the figures for the pages of clusters."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.components.base import base_component, base_executor, executor_spec
from tfx.dsl.io import fileio
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.component_spec import ChannelParameter, ExecutionParameter

from components.artifacts import Classification, KeyFigures, RejectedLines, Report
from components.evaluator.metrics import KEY_FIGURES, Counts
from components.properties import BASELINE_PROPERTY, PUSHED_DESTINATION, RUN_PARAMETERS
from components.run_report.history import DESCRIBED, Run, installed_versions, read_runs
from components.run_report.page import collect, render
from components.run_report.tracking import from_environment, run_of_output, track
from core.metadata import open_store
from preprocessing.features import CLASSES

REPORT_FILE = "report.html"


class Executor(base_executor.BaseExecutor):
    """Writes the outputs that `RunReport` describes."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        [report], [metrics], [classified] = (output_dict[key] for key in RunReportSpec.OUTPUTS)
        content = collect(self._run(input_dict, exec_properties, report.uri))
        on_cluster = not exec_properties.get("metadata")
        file = report.uri if on_cluster else os.path.join(report.uri, REPORT_FILE)
        fileio.makedirs(os.path.dirname(file))
        with fileio.open(file, "w") as page:
            page.write(render(content))
        if content.evaluation and on_cluster:
            _write_figures(content.evaluation.candidate, metrics, classified)
        if tracking := from_environment():
            track(tracking, content)

    def _run(
        self,
        input_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
        report: str,
    ) -> Run:
        run_id = (self._context.pipeline_run_id if self._context else None) or run_of_output(report)
        [blessing] = input_dict["blessing"]
        settings, changed = _settings(exec_properties)
        location = exec_properties.get("metadata")
        [recorded] = read_runs(open_store(location), run_id) if location else [None]
        return Run(
            name=exec_properties["name"],
            id=run_id,
            uris={key: input_dict[key][0].uri for key in DESCRIBED if input_dict.get(key)},
            started=recorded.started if recorded else None,
            settings=settings,
            changed=changed,
            versions=installed_versions(),
            steps=recorded.steps if recorded else (),
            # A file, because Kubeflow Pipelines may drop the properties of an artifact.
            blessed=fileio.exists(os.path.join(blessing.uri, constants.BLESSED_FILE_NAME)),
            baseline=str(blessing.get_string_custom_property(BASELINE_PROPERTY)),
            pushed_to=_destination(input_dict.get("pushed_model", [])),
        )


def _write_figures(counts: Counts, metrics: types.Artifact, classified: types.Artifact) -> None:
    """Write what the pages of clusters show, in the form of the classes of kfp."""
    from kfp.dsl import ClassificationMetrics

    for metric in KEY_FIGURES:
        value = metric.value(counts)
        # ML Metadata cannot store NaN, such as the precision of a model without a positive answer.
        if math.isfinite(value):
            metrics.set_float_custom_property(metric.title, value)
    found = ClassificationMetrics()
    thresholds, rates, recalls, _ = map(list, zip(*counts.curve(), strict=True))
    found.log_roc_curve(fpr=rates, tpr=recalls, threshold=thresholds)
    found.log_confusion_matrix(list(CLASSES), counts.confusion.tolist())
    for name, content in found.metadata.items():
        classified.set_json_value_custom_property(name, content)


def _settings(exec_properties: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings and the keys of the changed ones, after the parameters of the run."""
    settings, changed = map(json.loads, (exec_properties["settings"], exec_properties["changed"]))
    for name, section in RUN_PARAMETERS.items():
        value = exec_properties.get(name)
        if value is not None and settings[section][name] != value:
            settings[section][name] = value
            changed.append(f"{section}.{name}")
    return settings, changed


def _destination(pushed: list[types.Artifact]) -> str:
    """Return where the model was pushed to; empty if it was not."""
    if not pushed or not fileio.exists(pushed[0].uri) or not fileio.listdir(pushed[0].uri):
        return ""
    return str(pushed[0].get_string_custom_property(PUSHED_DESTINATION)) or pushed[0].uri


class RunReportSpec(types.ComponentSpec):
    PARAMETERS = {
        "name": ExecutionParameter(type=str),
        "settings": ExecutionParameter(type=str),
        "changed": ExecutionParameter(type=str),
        "metadata": ExecutionParameter(type=str, optional=True),
        "created": ExecutionParameter(type=str, optional=True),
        "input_base": ExecutionParameter(type=str, optional=True),
        "epochs": ExecutionParameter(type=int, optional=True),
        "strategy": ExecutionParameter(type=str, optional=True),
        "min_accuracy": ExecutionParameter(type=float, optional=True),
    }
    INPUTS = {
        "rejected": ChannelParameter(type=RejectedLines),
        "statistics": ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "anomalies": ChannelParameter(type=standard_artifacts.ExampleAnomalies),
        "examples": ChannelParameter(type=standard_artifacts.Examples),
        "model": ChannelParameter(type=standard_artifacts.Model),
        "model_run": ChannelParameter(type=standard_artifacts.ModelRun),
        "evaluation": ChannelParameter(type=standard_artifacts.ModelEvaluation),
        "check": ChannelParameter(type=standard_artifacts.InfraBlessing),
        "trials": ChannelParameter(type=standard_artifacts.TunerResults, optional=True),
        "blessing": ChannelParameter(type=standard_artifacts.ModelBlessing),
        "pushed_model": ChannelParameter(type=standard_artifacts.PushedModel, optional=True),
    }
    OUTPUTS = {
        "report": ChannelParameter(type=Report),
        "metrics": ChannelParameter(type=KeyFigures),
        "classification": ChannelParameter(type=Classification),
    }


class RunReport(base_component.BaseComponent):
    """The artifacts of a run -> `report`, `metrics` and `classification`.

    The page is the file `report.html` in the artifact `report`. On a cluster, where the artifact is
    a `system.HTML`, it is the artifact itself.

    Args:
      name: name of the pipeline.
      settings: JSON of all settings.
      changed: the keys of the settings that differ from the defaults.
      metadata: `paths.metadata`, if the component can read ML Metadata there. The report then has
        the duration of each component, and is never a cache hit.
      parameters: the parameters of the run, which replace values of `settings`; their names are
        those of RUN_PARAMETERS.
      inputs: the outputs that the report describes, by their names in `RunReportSpec`; `check` is
        the `blessing` of a ServingCheck.
    """

    SPEC_CLASS = RunReportSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        name: str,
        settings: str,
        changed: Sequence[str],
        metadata: str | None = None,
        parameters: Mapping[str, RuntimeParameter] | None = None,
        **inputs: types.BaseChannel | None,
    ):
        super().__init__(
            spec=RunReportSpec(
                name=name,
                settings=settings,
                changed=json.dumps(changed),
                metadata=metadata,
                created=None if metadata is None else repr(time.time()),
                report=types.Channel(type=Report),
                metrics=types.Channel(type=KeyFigures),
                classification=types.Channel(type=Classification),
                **inputs,
                **(parameters or {}),
            )
        )
