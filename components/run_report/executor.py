"""Executor of RunReport: reads the inputs, and writes the page and the figures for clusters."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components.properties import BASELINE_PROPERTY, PUSHED_DESTINATION, RUN_PARAMETERS
from components.run_report import cluster_pages
from components.run_report.history import read_runs
from components.run_report.page import collect, render
from components.run_report.sources import Sources, installed_versions
from core.metadata import open_store

NAME_KEY, SETTINGS_KEY, METADATA_KEY = "name", "settings", "metadata"
CREATED_KEY = "created"
REJECTED_KEY, STATISTICS_KEY, ANOMALIES_KEY = "rejected", "statistics", "anomalies"
EXAMPLES_KEY, MODEL_KEY, MODEL_RUN_KEY = "examples", "model", "model_run"
EVALUATION_KEY, BLESSING_KEY = "evaluation", "blessing"
CHECK_KEY, PUSHED_KEY = "check", "pushed_model"
REPORT_KEY, METRICS_KEY, CLASSIFICATION_KEY = "report", "metrics", "classification"
REPORT_FILE = "report.html"


class Executor(base_executor.BaseExecutor):
    """Writes the outputs that `component.RunReport` describes."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor."""
        content = collect(self._sources(input_dict, exec_properties))
        [report], [metrics], [classification] = (
            output_dict[key] for key in (REPORT_KEY, METRICS_KEY, CLASSIFICATION_KEY)
        )
        on_cluster = not exec_properties.get(METADATA_KEY)
        file = report.uri if on_cluster else os.path.join(report.uri, REPORT_FILE)
        fileio.makedirs(os.path.dirname(file))
        with fileio.open(file, "w") as page:
            page.write(render(content))
        if content.evaluation:
            for name, value in cluster_pages.metrics(content.evaluation).items():
                metrics.set_float_custom_property(name, value)
            for name, value in cluster_pages.classification(content.evaluation).items():
                classification.set_json_value_custom_property(name, value)

    def _sources(
        self, input_dict: dict[str, list[types.Artifact]], exec_properties: dict[str, Any]
    ) -> Sources:
        def uri(key: str) -> str | None:
            return artifact_utils.get_single_uri(input_dict[key]) if input_dict.get(key) else None

        run_id = (self._context.pipeline_run_id if self._context else None) or ""
        blessing = artifact_utils.get_single_instance(input_dict[BLESSING_KEY])
        sources = Sources(
            name=exec_properties[NAME_KEY],
            run_id=run_id,
            settings=_settings(exec_properties),
            versions=installed_versions(),
            rejected=uri(REJECTED_KEY),
            statistics=uri(STATISTICS_KEY),
            anomalies=uri(ANOMALIES_KEY),
            examples=uri(EXAMPLES_KEY),
            model=uri(MODEL_KEY),
            model_run=uri(MODEL_RUN_KEY),
            evaluation=uri(EVALUATION_KEY),
            check=uri(CHECK_KEY),
            # A file, because Kubeflow Pipelines may drop the properties of an artifact.
            blessed=fileio.exists(os.path.join(blessing.uri, constants.BLESSED_FILE_NAME)),
            baseline=str(blessing.get_string_custom_property(BASELINE_PROPERTY)),
            pushed_to=_destination(input_dict.get(PUSHED_KEY, [])),
        )
        location = exec_properties.get(METADATA_KEY)
        if not location:
            return sources
        [run] = read_runs(open_store(location), run_id)
        return dataclasses.replace(sources, started=run.started, steps=run.steps)


def _settings(exec_properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings, with the values that the parameters of the run have replaced."""
    settings: dict[str, Any] = json.loads(exec_properties[SETTINGS_KEY])
    for name, section in RUN_PARAMETERS.items():
        if exec_properties.get(name) is not None:
            settings[section] = {**settings.get(section, {}), name: exec_properties[name]}
    return settings


def _destination(pushed: list[types.Artifact]) -> str:
    """Return where the model was pushed to; empty if it was not."""
    if not pushed or not fileio.exists(pushed[0].uri) or not fileio.listdir(pushed[0].uri):
        return ""
    return str(pushed[0].get_string_custom_property(PUSHED_DESTINATION)) or pushed[0].uri
