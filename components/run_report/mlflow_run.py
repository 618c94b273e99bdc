"""A run of the pipeline in MLflow: a run, a child run for each trial, and a version of a model."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from absl import logging
from tfx.dsl.io import fileio
from tfx.utils import io_utils, path_utils

from components.evaluator.files import read_json
from components.run_report import mlflow_format
from components.run_report.classes import classes_csv
from components.run_report.content import Content
from components.run_report.history import Run
from components.run_report.mlflow_figures import (
    FIGURES_FILE,
    TABLES,
    TABLES_TAG,
    figures_table,
)
from components.run_report.mlflow_names import CLASSES_FILE, final_values
from components.run_report.page import render
from components.saved_models import check_loads, copy_folder
from core.errors import InputError
from core.settings import flat_settings
from core.training_summary import TrainingSummary
from examples.digest import content_digest
from serving.identity import identity

if TYPE_CHECKING:
    import mlflow.entities
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

CHAMPION = "champion"
"""The alias of the served version of the registered model."""
RUN_TAG, MODEL_TAG = "pipeline_run_id", "content"
"""The tag of a run with the id of the pipeline's run, and the tag of a version of the registered
model with the `identity` of the model. With them nothing is sent or registered twice."""
RESULT_TAG, VERDICT_TAG = "result", "verdict"
"""The tags of a run with its `result` and with the sentence of its verdict. The list of runs shows
the result at the beginning of the name."""
NOTE_TAG = "mlflow.note.content"
"""The tag with the description of a run, which its page shows as Markdown."""
_OF_CLASSES = (("data", "labels"), ("evaluation", "min_class_recall"))
"""Section and key of the settings that may be mappings of any texts."""
_COLLISION_SECONDS = 2.0
"""Maximum delay before a process that has created a run a second time searches for it again."""


@dataclass(frozen=True)
class Record:
    """A run that is sent to MLflow.

    Attributes:
      content: the content of the report of the run.
      tags: the tags of the run.
      model: the `identity` of the pushed model; empty if there is none, or if it is unknown.
      folder: the result of `find_model`; empty if `find_model` was not called.
      open_run: the id of the run that the platform has opened in MLflow for this process; empty if
        there is none.
    """

    content: Content
    tags: Mapping[str, str]
    model: str = ""
    folder: str = ""
    open_run: str = ""


def send(client: MlflowClient, record: Record) -> str:
    """Send a run to MLflow; return the `identity` of the pushed model, or an empty string.

    After an interrupted call, the next call sends the missing parts and repeats nothing. A run that
    the platform has opened stays open, because the platform closes it.

    Args:
      client: a client of `mlflow_connection.connected`.
      record: the run.

    Raises:
      InputError: the pushed model is lost. Nothing was sent.
      mlflow.exceptions.MlflowException: a request failed.
      OSError, tensorflow.errors.OpError: a file of the run cannot be read.
    """
    content, run = record.content, record.content.run
    known = registered(client, run.name) if run.pushed_to else {}
    needs_model = bool(run.pushed_to) and record.model not in known
    model = (record.folder or find_model(run, record.model)) if needs_model else ""
    lost = lost_artifacts(run)
    note = _note(record.tags.get(NOTE_TAG, ""), [*lost.values(), *content.problems])
    tags = {**record.tags, NOTE_TAG: note, TABLES_TAG: TABLES}
    info = _main_run(client, record)
    _log(client, info, tags, _params(run.settings), _metrics(content))
    client.log_inputs(info.run_id, _datasets(run))
    with tempfile.TemporaryDirectory() as folder:
        io_utils.write_string_file(os.path.join(folder, "report.html"), render(content))
        io_utils.write_string_file(os.path.join(folder, FIGURES_FILE), figures_table(content))
        evaluation = content.evaluation
        table = classes_csv(evaluation.candidate, evaluation.labels) if evaluation else ""
        if table:
            io_utils.write_string_file(os.path.join(folder, CLASSES_FILE), table)
        for name in ("evaluation", "model_run"):
            if name in run.uris and name not in lost:
                copy_folder(run.uris[name], os.path.join(folder, name))
        client.log_artifacts(info.run_id, folder)
    trials = run.uris.get("trials") if "trials" not in lost else None
    for number, trial in enumerate(read_json(trials, "tuner_results.json") if trials else ()):
        score = ("val_loss", trial.pop("score", math.nan), 0)
        name = f"{run.id}-trial-{number}"
        child = _find_or_create(client, info.experiment_id, run, name, f"trial {number}: {run.id}")
        _log(client, child, {"mlflow.parentRunId": info.run_id}, trial, [score])
        client.set_terminated(child.run_id)
    pushed = record.model if run.pushed_to else ""
    if model:
        pushed = _register(client, info.run_id, run, model)
    if info.run_id != record.open_run:
        ended = info.start_time + round(1e3 * run.seconds)
        client.set_terminated(info.run_id, "FAILED" if run.error else "FINISHED", ended)
    return pushed


def find_model(run: Run, content: str = "") -> str:
    """Return the folder of the model that a run pushed: the Trainer's output, or the pushed copy.

    Args:
      run: a run that pushed a model.
      content: the `identity` of the model; empty if it is unknown. Then the pushed copy is not
        used, because it may have been replaced.

    Raises:
      InputError: each of the folders is missing, damaged or contains another model.
      OSError, tensorflow.errors.OpError: a file cannot be read now.
    """
    folders = []
    if "model" in run.uris:
        folders.append(path_utils.serving_model_path(run.uris["model"]))
    # The location of an endpoint is a name and not a folder.
    if content and fileio.exists(run.pushed_to):
        folders.append(run.pushed_to)
    problems = []
    for folder in folders:
        try:
            check_loads(folder)
        except InputError as error:
            problems.append(f"{folder}: {error}")
        else:
            if content in ("", identity(folder)):
                return folder
            problems.append(f"{folder}: is another model")
    raise InputError(f"the pushed model is lost: {'; '.join(problems) or run.pushed_to}")


def lost_artifacts(run: Run) -> dict[str, str]:
    """Return name -> message for each artifact of a run without a file, except for the model.

    `find_model` checks the model.
    """
    return {
        name: f"{name}: {uri} is missing"
        for name, uri in sorted(run.uris.items())
        if name != "model" and not (fileio.exists(uri) and fileio.listdir(uri))
    }


def registered(client: MlflowClient, name: str) -> dict[str, ModelVersion]:
    """Return the `identity` of each registered model -> its oldest version.

    Args:
      client: a client of `mlflow_connection.connected`.
      name: the name of the registered model.

    Raises:
      mlflow.exceptions.MlflowException: a request failed.
    """
    found = client.search_model_versions(f"name = '{name}'")
    newest_first = sorted(found, key=lambda version: int(version.version), reverse=True)
    # A version without the tag was not registered by this program.
    return {v.tags[MODEL_TAG]: v for v in newest_first if v.tags.get(MODEL_TAG)}


def move_champion(client: MlflowClient, name: str, served: str) -> str:
    """Move the alias CHAMPION to the version of the served model.

    If the served model is not registered, the alias is removed.

    Args:
      client: a client of `mlflow_connection.connected`.
      name: the name of the registered model.
      served: the `identity` of the served model.

    Returns:
      `version NUMBER` or `no version`, for messages.

    Raises:
      mlflow.exceptions.MlflowException: a request failed.
    """
    versions = registered(client, name)
    if served in versions:
        client.set_registered_model_alias(name, CHAMPION, versions[served].version)
        return f"version {versions[served].version}"
    if versions:
        client.delete_registered_model_alias(name, CHAMPION)
    return "no version"


def _main_run(client: MlflowClient, record: Record) -> mlflow.entities.RunInfo:
    """Return the run of MLflow for a record: the run of the platform, or one of its own.

    Raises:
      MlflowException: a request failed.
    """
    import mlflow
    from mlflow.exceptions import MlflowException

    run = record.content.run
    if record.open_run:
        try:
            found = client.get_run(record.open_run)
        except MlflowException as error:
            # The platform may use another server, whose ids may have another form.
            if error.error_code not in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
                raise
            logging.warning("MLflow has no run %s; the run gets one of its own", record.open_run)
        else:
            # A variable that a shell exports would merge all runs that the shell starts.
            if found.data.tags.get(RUN_TAG, run.id) == run.id:
                client.set_tag(record.open_run, RUN_TAG, run.id)
                return found.info
    experiment = mlflow.set_experiment(run.name).experiment_id
    result = record.tags.get(RESULT_TAG, "")
    name = f"{result}: {run.id}" if result else run.id
    return _find_or_create(client, experiment, run, run.id, name)


def _find_or_create(
    client: MlflowClient, experiment: str, run: Run, run_id: str, name: str
) -> mlflow.entities.RunInfo:
    """Return the only run with `run_id` in its tag; create it with a name if there is none.

    The server does not enforce that a tag is unique. So two processes, or the retry of a request
    whose response was lost, may create the run twice. Therefore each process searches again after
    it has created a run, and deletes its own run if it finds another one. At least one of two
    processes finds the run of the other.
    """
    while True:
        found = client.search_runs([experiment], f"tags.{RUN_TAG} = '{run_id}'")
        if found:
            return min(found, key=lambda each: each.info.run_id).info
        started = round(1e3 * run.started) if run.started else None
        created = client.create_run(experiment, started, {RUN_TAG: run_id}, name).info
        found = client.search_runs([experiment], f"tags.{RUN_TAG} = '{run_id}'")
        if [each.info.run_id for each in found] == [created.run_id]:
            return created
        client.delete_run(created.run_id)
        time.sleep(random.uniform(0, _COLLISION_SECONDS))


def _log(
    client: MlflowClient,
    info: mlflow.entities.RunInfo,
    tags: Mapping[str, str],
    params: Mapping[str, Any],
    metrics: Iterable[tuple[str, float, int]],
) -> None:
    """Log tags, parameters, and the metrics (name, value, step) with a finite value."""
    from mlflow.entities import Metric, Param, RunTag

    client.log_batch(
        info.run_id,
        # MLflow ignores a metric whose name, step and time it already has.
        [Metric(key, y, info.start_time, x) for key, y, x in metrics if math.isfinite(y)],
        [Param(key, str(value)) for key, value in params.items()],
        [RunTag(key, value) for key, value in tags.items() if value],
    )


def _params(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as parameters of MLflow.

    A mapping of labels or classes is one parameter, because MLflow does not allow every text in the
    name of a parameter.
    """
    sections = dict(settings)
    for section, key in _OF_CLASSES:
        value = sections.get(section, {}).get(key)
        if isinstance(value, Mapping) and value:
            text = json.dumps(value, ensure_ascii=False)
            sections[section] = {**sections[section], key: text}
    return flat_settings(sections)


def _metrics(content: Content) -> Iterator[tuple[str, float, int]]:
    """Yield (name, value, step) of the metrics of the steps, of the epochs, and of the end."""
    last = 0
    if content.training:
        yield from _of_training(content.training)
        last = content.training.measured.steps
    if content.evaluation:
        for name, value in final_values(content.evaluation.candidate, content.evaluation.labels):
            yield name, value, last
    if content.comparison:
        for figure in content.comparison.figures:
            yield f"drift_{figure.name}", figure.value, last


def _of_training(training: TrainingSummary) -> Iterator[tuple[str, float, int]]:
    for point in training.curve:
        yield "train_loss", point.loss, point.step
        yield "train_accuracy", point.accuracy, point.step
        yield "train_learning_rate", point.learning_rate, point.step
    for epoch, metrics in enumerate(training.epoch_metrics, 1):
        for name, value in asdict(metrics).items():
            yield f"epoch_{name}", value, epoch * training.steps_per_epoch
    last = training.measured.steps
    yield "examples_per_second", training.measured.examples_per_second, last
    yield "seconds", training.seconds, last


def _datasets(run: Run) -> list[Any]:
    """Return the splits of a run as data sets, each with a digest of its content."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    if "examples" not in run.uris:
        return []
    found = []
    for folder in sorted(fileio.glob(os.path.join(run.uris["examples"], "Split-*"))):
        split = os.path.basename(folder).removeprefix("Split-")
        digest = content_digest([os.path.join(folder, "*")])
        # MLflow allows at most 36 characters.
        digest = hashlib.sha256(digest.encode()).hexdigest()[:32]
        name, where = f"{run.name}/{split}", json.dumps({"uri": folder})
        dataset = Dataset(name, digest, "tfrecord", where)
        found.append(DatasetInput(dataset, [InputTag("mlflow.data.context", split)]))
    return found


def _register(client: MlflowClient, run_id: str, run: Run, model: str) -> str:
    """Register the pushed model as a version, if it is not registered; return its `identity`."""
    import mlflow

    content = identity(model)
    if content in registered(client, run.name):
        return content
    with tempfile.TemporaryDirectory() as folder:
        saved_model, saved = (os.path.join(folder, name) for name in ("saved_model", "model"))
        copy_folder(model, saved_model)
        mlflow_format.save(saved_model, saved)
        client.log_artifacts(run_id, saved, "model")
    tags = {MODEL_TAG: content, "pushed_to": run.pushed_to}
    created = mlflow.register_model(f"runs:/{run_id}/model", run.name, None, tags=tags)
    # Another process may have registered the model at the same time.
    if registered(client, run.name)[content].version != created.version:
        client.delete_model_version(run.name, created.version)
    return content


def _note(note: str, problems: Iterable[str]) -> str:
    """Return the description of a run, with a line for each part that was not sent."""
    return "\n\n".join(filter(None, [note, *(f"not sent: {problem}" for problem in problems)]))
