"""RunReport: one HTML page on the run, and the figures for the pages of clusters.

`@component` requires annotations that are types, so this module has no
`from __future__ import annotations`, which turns them into strings.
"""

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import standard_artifacts
from tfx.utils import io_utils

from components.artifacts import Classification, KeyFigures, RejectedLines, Report
from components.evaluator.metrics import KEY_FIGURES, Counts
from components.properties import (
    BASELINE_PROPERTY,
    PUSHED,
    PUSHED_DESTINATION,
    RUN_PARAMETERS,
)
from components.run_report.history import DESCRIBED, Run, installed_versions, read_run_by_output
from components.run_report.page import collect, render
from components.run_report.tracking import from_environment, run_id_from_output, track
from core.metadata import open_store
from preprocessing.features import CLASSES

REPORT_FILE = "report.html"
_NOT_GIVEN: Any = None
"""The default of an optional argument of the component, whose annotation excludes None."""


@component
def RunReport(
    name: Parameter[str],
    settings: Parameter[str],
    changed: Parameter[str],
    rejected: InputArtifact[RejectedLines],
    statistics: InputArtifact[standard_artifacts.ExampleStatistics],
    anomalies: InputArtifact[standard_artifacts.ExampleAnomalies],
    examples: InputArtifact[standard_artifacts.Examples],
    model: InputArtifact[standard_artifacts.Model],
    model_run: InputArtifact[standard_artifacts.ModelRun],
    evaluation: InputArtifact[standard_artifacts.ModelEvaluation],
    check: InputArtifact[standard_artifacts.InfraBlessing],
    blessing: InputArtifact[standard_artifacts.ModelBlessing],
    report: OutputArtifact[Report],
    metrics: OutputArtifact[KeyFigures],
    classification: OutputArtifact[Classification],
    trials: InputArtifact[standard_artifacts.TunerResults] = _NOT_GIVEN,
    pushed_model: InputArtifact[standard_artifacts.PushedModel] = _NOT_GIVEN,
    metadata: Parameter[str] = _NOT_GIVEN,
    created: Parameter[str] = _NOT_GIVEN,
    input_base: Parameter[str] = _NOT_GIVEN,
    epochs: Parameter[int] = _NOT_GIVEN,
    strategy: Parameter[str] = _NOT_GIVEN,
    min_accuracy: Parameter[float] = _NOT_GIVEN,
) -> None:
    """The artifacts of a run -> `report`, `metrics` and `classification`.

    The page is the file `report.html` in the artifact `report`. On a cluster, where the artifact is
    a `system.HTML`, it is the artifact itself.

    Args:
      examples: the reviews.
      rejected: the rejected lines.
      statistics: the statistics of the splits.
      anomalies: the anomalies of the splits.
      model: the candidate.
      model_run: the figures of its training.
      evaluation: its evaluation.
      blessing: the blessing of the Evaluator.
      pushed_model: the model that was pushed, if any.
      trials: the trials of the Tuner, if any.
      report: the page.
      metrics: the key figures.
      classification: the curve and the confusion matrix.
      name: the name of the pipeline.
      settings: JSON of all settings.
      changed: JSON of the keys that differ from the defaults.
      check: the `blessing` of a ServingCheck.
      metadata: `paths.metadata`, if the component can read ML Metadata there. The report then has
        the duration of each component.
      created: the time, with which the component is never a cache hit.
      input_base: a parameter of the run, which replaces its value in `settings`.
      epochs: likewise.
      strategy: likewise.
      min_accuracy: likewise.
    """
    arguments = dict(locals())
    recorded = read_run_by_output(open_store(metadata), report.uri) if metadata else None
    shown_settings, shown_changes = _settings(arguments)
    content = collect(
        Run(
            name=name,
            id=recorded.id if recorded else run_id_from_output(report.uri),
            uris={key: arguments[key].uri for key in DESCRIBED if arguments[key]},
            started=recorded.started if recorded else None,
            settings=shown_settings,
            changed=shown_changes,
            versions=installed_versions(),
            steps=recorded.steps if recorded else (),
            # A file, because Kubeflow Pipelines may drop the properties of an artifact.
            blessed=fileio.exists(os.path.join(blessing.uri, constants.BLESSED_FILE_NAME)),
            baseline=blessing.get_string_custom_property(BASELINE_PROPERTY),
            pushed_to=_destination(pushed_model),
        )
    )
    on_cluster = not metadata
    file = report.uri if on_cluster else os.path.join(report.uri, REPORT_FILE)
    io_utils.write_string_file(file, render(content))
    if content.evaluation and on_cluster:
        _write_figures(content.evaluation.candidate, metrics, classification)
    if tracking := from_environment():
        track(tracking, content)


def _write_figures(counts: Counts, metrics: types.Artifact, classification: types.Artifact) -> None:
    """Write what the pages of clusters show, in the form of the classes of kfp."""
    from kfp.dsl import ClassificationMetrics

    for metric in KEY_FIGURES:
        value = metric.value(counts)
        # ML Metadata cannot store NaN, such as the precision without a positive answer.
        if math.isfinite(value):
            metrics.set_float_custom_property(metric.title, value)
    found = ClassificationMetrics()
    thresholds, rates, recalls, _ = map(list, zip(*counts.curve(), strict=True))
    found.log_roc_curve(fpr=rates, tpr=recalls, threshold=thresholds)
    found.log_confusion_matrix(list(CLASSES), counts.confusion.tolist())
    for name, content in found.metadata.items():
        classification.set_json_value_custom_property(name, content)


def _settings(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings and the keys of the changed ones, after the parameters of the run."""
    settings, changed = map(json.loads, (arguments["settings"], arguments["changed"]))
    for name, section in RUN_PARAMETERS.items():
        value = arguments[name]
        if value is not None and settings[section][name] != value:
            settings[section][name] = value
            changed.append(f"{section}.{name}")
    return settings, changed


def _destination(pushed: types.Artifact | None) -> str:
    """Return where the model was pushed to; empty if it was not.

    The folder of the artifact may have been deleted since a cached push, and Kubeflow Pipelines may
    drop the properties of an artifact. Either of them is enough.
    """
    if not pushed:
        return ""
    has_files = fileio.exists(pushed.uri) and fileio.listdir(pushed.uri)
    if not has_files and not pushed.get_int_custom_property(PUSHED):
        return ""
    return str(pushed.get_string_custom_property(PUSHED_DESTINATION)) or str(pushed.uri)
