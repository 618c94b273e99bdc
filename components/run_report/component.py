"""RunReport: one HTML page about the run, and the figures for the UI of clusters.

`@component` requires annotations that are types, so this module has no
`from __future__ import annotations`, which turns them into strings.
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from typing import Any

from absl import logging
from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import standard_artifacts
from tfx.utils import io_utils

from components.artifacts import Classification, KeyFigures, RejectedLines, Report
from components.evaluator.files import Results
from components.evaluator.metrics import key_figures
from components.properties import (
    BASELINE_PROPERTY,
    NEWEST_SPAN_PROPERTY,
    PUSHED,
    PUSHED_DESTINATION,
    RUN_PARAMETERS,
)
from components.run_report.classes import matrix_classes
from components.run_report.content import collect
from components.run_report.earlier import Earlier, read_earlier
from components.run_report.history import DESCRIBED, Run, installed_versions, read_run_by_output
from components.run_report.page import render
from components.run_report.summary import decision
from components.run_report.tracking import from_environment, run_id_from_output, track
from components.run_report.verdict import LOGGED, judge
from core.metadata import open_store

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
    span: Parameter[str] = _NOT_GIVEN,
    epochs: Parameter[int] = _NOT_GIVEN,
    strategy: Parameter[str] = _NOT_GIVEN,
    min_accuracy: Parameter[float] = _NOT_GIVEN,
) -> None:
    """Write a page about a run to `report`, and figures to `metrics` and `classification`.

    The page is the file `report.html` in the artifact `report`. On a cluster the artifact is a
    `system.HTML`, the page is the file at the URI of the artifact itself, and the log has the
    verdict on the run. If the run has a tracking server, the component also sends the run to it.

    Args:
      name: the name of the pipeline.
      settings: the JSON of all settings.
      changed: the JSON of the keys whose values differ from the defaults.
      rejected: the rejected lines.
      statistics: the statistics of the splits.
      anomalies: the anomalies of the splits.
      examples: the raw Examples.
      model: the candidate.
      model_run: the figures of the training.
      evaluation: the evaluation of the candidate.
      check: the blessing of the ServingCheck.
      blessing: the blessing of the Evaluator.
      report: the output with the page.
      metrics: the output with the key figures; written on a cluster only.
      classification: the output with the ROC curve and the confusion matrix; written on a cluster
        only.
      trials: the trials of the Tuner, if the pipeline has one.
      pushed_model: the pushed model, if the pipeline has a Pusher.
      metadata: `paths.metadata`, if the component can read ML Metadata there. The report then
        contains the duration of each component.
      created: the time at which the pipeline was created, so that the component is no cache hit.
      input_base: the parameter of the run that replaces `data.input_base` in `settings`.
      span: the parameter of the run that replaces `data.span` in `settings`.
      epochs: the parameter of the run that replaces `training.epochs` in `settings`.
      strategy: the parameter of the run that replaces `training.strategy` in `settings`.
      min_accuracy: the parameter of the run that replaces `evaluation.min_accuracy` in `settings`.

    Raises:
      InputError: the record of the run in ML Metadata cannot be read.
      OSError, tensorflow.errors.OpError: a file cannot be written.
    """
    arguments = dict(locals())
    store = open_store(metadata) if metadata else None
    shown_settings, shown_changes = _settings(arguments)
    # A cluster has no record of a run.
    recorded = read_run_by_output(store, report.uri) if store else None
    run = dataclasses.replace(
        recorded or Run(name, run_id_from_output(report.uri)),
        name=name,
        uris={key: arguments[key].uri for key in DESCRIBED if arguments[key]},
        settings=shown_settings,
        changed=shown_changes,
        versions=installed_versions(),
        # The file, because Kubeflow Pipelines may drop the properties of an artifact.
        blessed=fileio.exists(os.path.join(blessing.uri, constants.BLESSED_FILE_NAME)),
        baseline=blessing.get_string_custom_property(BASELINE_PROPERTY),
        pushed_to=_destination(pushed_model),
        span=rejected.get_string_custom_property(NEWEST_SPAN_PROPERTY),
    )
    earlier = read_earlier(store, run) if store else Earlier(recorded=False)
    content = collect(run, earlier=earlier)
    on_cluster = not metadata
    file = report.uri if on_cluster else os.path.join(report.uri, REPORT_FILE)
    io_utils.write_string_file(file, render(content))
    if on_cluster:
        logging.info("%s%s", LOGGED, judge(decision(content)).sentence)
    if content.evaluation and on_cluster:
        _write_figures(content.evaluation, metrics, classification)
    if tracking := from_environment():
        track(tracking, content)


def _write_figures(
    results: Results, metrics: types.Artifact, classification: types.Artifact
) -> None:
    """Write what the pages of clusters show, in the form of the classes of kfp."""
    from kfp.dsl import ClassificationMetrics

    counts, labels = results.candidate, results.labels
    for metric in key_figures(labels):
        value = metric.value(counts)
        # ML Metadata cannot store NaN, such as the precision without a positive answer.
        if math.isfinite(value):
            metrics.set_float_custom_property(metric.title, value)
    found = ClassificationMetrics()
    if curve := list(counts.curve()):
        thresholds, rates, recalls, _ = map(list, zip(*curve, strict=True))
        found.log_roc_curve(fpr=rates, tpr=recalls, threshold=thresholds)
    # A platform does not store, let alone show, the million cells of a thousand classes.
    if shown := matrix_classes(counts, labels):
        names = [labels.names[label] for label in shown]
        found.log_confusion_matrix(names, counts.confusion_of(shown).tolist())
    for name, content in found.metadata.items():
        classification.set_json_value_custom_property(name, content)


def _settings(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings with the parameters of the run, and the keys of the changed settings."""
    settings, changed = map(json.loads, (arguments["settings"], arguments["changed"]))
    for name, section in RUN_PARAMETERS.items():
        value = arguments[name]
        if value is not None and settings[section][name] != value:
            settings[section][name] = value
            changed.append(f"{section}.{name}")
    return settings, changed


def _destination(pushed: types.Artifact | None) -> str:
    """Return the location that the model was pushed to; empty if no model was pushed.

    Files in the artifact prove a push, and so does its property: the files may have been deleted
    since a cached push, and Kubeflow Pipelines may drop the property.
    """
    if not pushed:
        return ""
    has_files = fileio.exists(pushed.uri) and fileio.listdir(pushed.uri)
    if not has_files and not pushed.get_int_custom_property(PUSHED):
        return ""
    return str(pushed.get_string_custom_property(PUSHED_DESTINATION)) or str(pushed.uri)
