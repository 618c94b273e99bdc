"""One run of TFX's local engine, and its outcome."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import tensorflow as tf
from absl import logging
from ml_metadata.proto import metadata_store_pb2 as mlmd
from tfx.dsl.io import fileio
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.proto.orchestration import pipeline_pb2
from tfx.utils import path_utils

from components.destination import Destination, make_destination
from components.evaluator import new_span
from components.evaluator.files import read
from components.evaluator.gates import deciding
from components.evaluator.metrics import ACCURACY, AUC, constant_answer, key_figures
from components.examples import SAMPLE_SIZE, example_text
from components.properties import (
    CAUSE_PROPERTY,
    CLASSES_PROPERTY,
    NOT_CHECKED_PROPERTY,
    READING_PROPERTY,
    TRACKING,
    UNUSED_PROPERTY,
)
from components.run_report import history
from components.run_report.component import REPORT_FILE
from components.run_report.content import collect
from components.run_report.outcome import Outcome
from components.run_report.tracking import from_environment, track
from core.errors import InputError, write_again
from core.metadata import connection_config
from core.training_summary import TrainingSummary, read_summary
from examples.tfrecords import read_sample
from pipeline.config import PipelineConfig, recorded_settings
from pipeline.data_check.settings_file import as_argument
from pipeline.data_check.texts import shares_of_scripts, without_blanks
from pipeline.destinations import destination_json
from pipeline.nodes import EVALUATOR, EXAMPLE_GEN, REPORT, SERVING_CHECK
from pipeline.pipeline import make_tracking
from platforms.local import unchanged
from serving.drift.compare import Comparison, NotCompared
from serving.identity import identity

_SAMPLED_FILES = 4
"""Maximum number of files from which the texts are sampled. A file has about 16 MiB of text."""


class Runner(LocalDagRunner):
    """TFX's local runner, which also records the settings and the outcome in ML Metadata.

    Args:
      config: the settings of the run.
      input_fingerprint: the fingerprint of the input that the pipeline contains; None: the
        constructor computes it.

    Attributes:
      run_id: the id of the run after its end; None before. It is always None in
        `tfx pipeline create`, which replaces `run` in order to read the pipeline.
    """

    def __init__(self, config: PipelineConfig, input_fingerprint: str | None = None):
        super().__init__()
        self._config = config
        self._paths = config.paths
        self.run_id: str | None = None
        self._fingerprint = unchanged.fingerprint(config, input_fingerprint)
        if tracking := make_tracking(config, "local"):
            os.environ[TRACKING] = tracking.to_json()

    def run_with_ir(self, pipeline: pipeline_pb2.Pipeline, **options: Any) -> None:
        with self._metadata() as handle:
            mark_replaced(handle, make_destination(destination_json(self._config)))
        recorded = {
            history.SETTINGS: recorded_settings(self._config),
            history.VERSIONS: json.dumps(history.installed_versions()),
        }
        contexts = (
            context
            for node in pipeline.nodes
            for context in node.pipeline_node.contexts.contexts
            if context.type.name == history.RUN_TYPE
        )
        for context in contexts:
            for key, value in recorded.items():
                context.properties[key].field_value.string_value = value
        try:
            super().run_with_ir(pipeline, **options)
        finally:
            # During the run TFX has replaced the runtime parameter by its value.
            self.run_id = pipeline.runtime_spec.pipeline_run_id.field_value.string_value

    def outcome(self) -> Outcome:
        """Record the outcome of the run, which must have finished, and return it.

        Raises:
          KeyError: the run lacks an artifact.
          InputError: the evaluation was deleted.
          OSError, tensorflow.errors.OpError: the evaluation cannot be read.
        """
        assert self.run_id is not None
        with self._metadata() as handle:
            [run] = history.read_runs(handle.store, self.run_id)
            outcome = collect_outcome(run)
            if not outcome.pushed_to:
                destination = make_destination(destination_json(self._config))
                outcome = replace(outcome, served_as=served_as(destination, run.uris["model"]))
            if not outcome.verdict.is_good and not self._config.transform.character_ngrams:
                outcome = replace(outcome, settings_note=settings_note(run.uris["examples"]))
            history.record_outcome(handle.store, self.run_id, outcome)
            unchanged.record(handle.store, self.run_id, self._config, self._fingerprint)
        return outcome

    def record_failure(self, error: str) -> None:
        """Record the error of the run, and send the run to the tracking server if there is one.

        Nothing is recorded if the run has not begun.

        Args:
          error: the component that failed and the cause, in one line.
        """
        if self.run_id:
            with self._metadata() as handle:
                history.record(handle.store, self.run_id, history.ERROR, error)
                found = history.read_runs(handle.store, self.run_id)
            tracking = from_environment()
            if tracking and found:
                track(tracking, collect(found[0]))

    def _metadata(self) -> metadata.Metadata:
        return metadata.Metadata(connection_config(self._paths.metadata))


def mark_replaced(handle: metadata.Metadata, destination: Destination) -> None:
    """Mark the pushed models in ML Metadata that `destination` does not serve any more.

    TFX's cache checks the artifact of a Pusher, but not the model at the destination. The cache
    ignores an execution whose output is marked, so the Pusher pushes its model again. Without the
    mark, a run that returns to earlier settings would be a cache hit, and the model of the later
    settings would stay in production.

    Args:
      handle: an open connection to ML Metadata.
      destination: the destination of the push. Models of other destinations are not marked.

    Raises:
      OSError, tensorflow.errors.OpError, RuntimeError: the destination cannot be read.
      InputError: a service refuses a setting of the destination.
    """
    served = destination.served_name()
    for artifact in handle.store.get_artifacts_by_type("PushedModel"):
        pushed_to = history.destination(artifact)
        if (
            artifact.state == mlmd.Artifact.LIVE
            and destination.find_name(pushed_to) not in (None, served)
            # Several machines may share ML Metadata. Only the machine that pushed the model has the
            # files of the artifact.
            and fileio.exists(artifact.uri)
        ):
            logging.info("No longer served from %s: %s", destination.location, pushed_to)
            artifact.state = mlmd.Artifact.MARKED_FOR_DELETION
            handle.store.put_artifacts([artifact])


def served_as(destination: Destination, model: str) -> str:
    """Return the name of the served version if it has a model; else an empty text.

    An earlier run with other thresholds may have pushed the model.

    Args:
      destination: the destination of the push.
      model: the URI of an output of the Trainer.
    """
    try:
        content = identity(path_utils.serving_model_path(model))
        served = destination.served()
    except (OSError, tf.errors.OpError, InputError, RuntimeError) as error:
        # The run itself has finished.
        logging.warning("It is unknown whether the model is served: %s", error)
        return ""
    return served.name if served and served.content == content else ""


def settings_note(examples: str) -> str:
    """Return a clause with the settings that the texts of a run require; empty if there are none.

    Args:
      examples: the URI of the raw Examples, whose train split is sampled.
    """
    try:
        sample = read_sample(f"{examples}/Split-train", SAMPLE_SIZE, _SAMPLED_FILES)
    except (tf.errors.OpError, InputError) as error:
        # The run itself has finished.
        logging.warning("It is unknown whether the texts require settings: %s", error)
        return ""
    found = without_blanks(shares_of_scripts(list(map(example_text, sample))))
    if found is None:
        return ""
    note, _ = found
    return f"{note.message}: --set {as_argument(note.settings)}"


def collect_outcome(run: history.Run) -> Outcome:
    """Return the outcome of a run that has finished, from the artifacts of its components.

    Raises:
      KeyError: the run lacks an artifact.
      InputError: the evaluation was deleted.
      OSError, tensorflow.errors.OpError: the evaluation cannot be read.
    """
    rejected = run.outputs[EXAMPLE_GEN]["rejected"]
    read_lines = rejected.custom_properties
    check = run.outputs[SERVING_CHECK]["blessing"].custom_properties
    evaluation = run.outputs[EVALUATOR]["evaluation"].uri
    try:
        results = read(evaluation)
    except (FileNotFoundError, fileio.NotFoundError):
        raise InputError(
            f"{evaluation}: files of the evaluation were deleted, although ML Metadata lists it; "
            f"{write_again('them')}"
        ) from None
    own, base = results.candidate, results.baseline or results.candidate
    training = _training(run.uris)
    metrics = {metric.title: metric.value(own) for metric in key_figures(results.labels)}
    drift = _compared(evaluation)
    return Outcome(
        lines=history.recorded_counts(rejected),
        reading=read_lines[READING_PROPERTY].string_value.splitlines(),
        drift=drift.sentence if drift else "",
        severity=drift.severity if isinstance(drift, Comparison) else "",
        class_lines=read_lines[CLASSES_PROPERTY].string_value.splitlines(),
        unused=read_lines[UNUSED_PROPERTY].string_value.splitlines(),
        accuracy=ACCURACY.value(own),
        accuracy_interval=ACCURACY.interval(own),
        auc=metrics.get(AUC.title, math.nan),
        constant_answer=constant_answer(own, results.labels),
        baseline=run.baseline,
        accuracy_change=ACCURACY.value(own) - ACCURACY.value(base),
        blessed=bool(run.blessed),
        thresholds=deciding(results.checks()),
        refused=check[CAUSE_PROPERTY].string_value,
        not_checked=check[NOT_CHECKED_PROPERTY].string_value,
        pushed_to=run.pushed_to,
        report=os.path.join(run.outputs[REPORT]["report"].uri, REPORT_FILE),
        strategy=training.strategy if training else "",
        loss_curve=training.loss_curve() if training else [],
        steps=training.measured.steps if training else 0,
        skipped_warm_start=training.skipped_warm_start if training else "",
        metrics=metrics,
        other_classes=results.other_classes,
        not_tested=results.missing,
        class_count=results.labels.number,
    )


def _compared(evaluation: str) -> Comparison | NotCompared | None:
    """Return the comparison of the newest span, see `new_span.read`."""
    try:
        return new_span.read(evaluation)
    except ValueError as error:
        # The outcome does not depend on it, and a cached evaluation may be of another version.
        return NotCompared(f"{new_span.DRIFT_FILE} cannot be read: {error}")


def _training(uris: Mapping[str, str]) -> TrainingSummary | None:
    """Return the summary of the training; None if it is missing."""
    try:
        return read_summary(uris["model_run"])
    # The file is missing if the disk was full at the end of the training.
    except tf.errors.NotFoundError:
        return None
