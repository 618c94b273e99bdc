"""Send a run to MLflow: its settings, metrics, artifacts, datasets, trials and pushed model.

A run is sent once, at its end, from the files that the report describes. So a tracking server that
does not respond costs a run one timeout, and a later `amazon-reviews runs --send` sends the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import math
import os
import platform
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import logging
from tfx.dsl.io import fileio
from tfx.utils import io_utils, path_utils

from components.evaluator.files import read_json
from components.evaluator.metrics import KEY_FIGURES
from components.properties import TRACKING
from components.run_report import mlflow_format
from components.run_report.history import Run, Step
from components.run_report.page import Content, collect, render, result
from core.errors import ConfigError, ServerError, cause
from core.settings import flat_settings
from serving.identity import identity
from trainer_module.inputs import stored

if TYPE_CHECKING:
    import mlflow.entities
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

CHAMPION = "champion"
"""The alias of the served version of the registered model."""
RUN_TAG, MODEL_TAG = "pipeline_run_id", "content"
"""The tag of a run with the id of the pipeline's run, and the tag of a version of the registered
model with the `identity` of the model, so that a model is registered once."""
PLATFORM, COMMIT = "platform", "mlflow.source.git.commit"
"""Tags of a run: `local`, `kubeflow` or `vertex`, and the commit of its code."""
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}


class Tracking(NamedTuple):
    """The tracking server of a run.

    Attributes:
      uri: see `tracking.mlflow` of the settings.
      unsent: the folder for the runs that could not be sent.
      name: the name of the pipeline, of its experiment and of the registered model.
      tags: the platform and the commit of the run.
    """

    uri: str
    unsent: str
    name: str
    tags: dict[str, str]


def check_client() -> None:
    """Raise ConfigError if MLflow's client is not installed."""
    if importlib.util.find_spec("mlflow") is None:
        raise ConfigError(
            "tracking.mlflow: MLflow is not installed; run pip install 'amazon-reviews[mlflow]', "
            "or build the image by `amazon-reviews image build`"
        )


def from_environment() -> Tracking | None:
    """Return the tracking of the run of this process; None without one."""
    value = os.environ.get(TRACKING)
    return Tracking(*json.loads(value)) if value else None


def run_of_output(uri: str) -> str:
    """Return the id of a cluster's run from the URI of an output of one of its steps.

    TFX does not know the id there. Kubeflow Pipelines writes ROOT/PIPELINE/RUN/TASK/…/OUTPUT, where
    RUN is a UUID, and Vertex AI Pipelines writes ROOT/PROJECT/RUN/TASK/OUTPUT.
    """
    found = re.search(r"/([0-9a-f]{8}(-[0-9a-f]{4}){3}-\w{12})/", uri)
    return found[1] if found else uri.rstrip("/").split("/")[-3]


@contextlib.contextmanager
def connected(uri: str) -> Iterator[MlflowClient]:
    """Yield a client with short timeouts; raise ServerError if a request fails."""
    os.environ.update({**_ENVIRONMENT, **os.environ})
    try:
        import mlflow

        mlflow.set_tracking_uri(uri)
        yield mlflow.MlflowClient()
    except Exception as error:  # MLflow raises the errors of many libraries.
        raise ServerError(f"tracking.mlflow: {uri}: {cause(error)}") from None


def track(tracking: Tracking, content: Content) -> None:
    """Send a run, or log one warning and keep the run for `send_unsent`."""
    run = content.run
    tags = {**tracking.tags, **_tags(content)}
    try:
        with connected(tracking.uri) as client:
            if pushed := send(client, content, tags):
                move_champion(client, tracking.name, pushed)
    except ServerError as error:
        unsent = json.dumps({"run": {**vars(run), "outputs": {}}, "tags": tags})
        io_utils.write_string_file(os.path.join(tracking.unsent, f"{run.id}.json"), unsent)
        remedy = "`amazon-reviews runs --send` sends it"
        logging.warning("%s; the run %s was not sent; %s", error, run.id, remedy)


def send_unsent(client: MlflowClient, unsent: str) -> Iterator[str]:
    """Send the runs that were not sent; yield the id of each one that is now in MLflow."""
    for file in sorted(fileio.glob(os.path.join(unsent, "*.json"))):
        kept = json.loads(io_utils.read_string_file(file))
        steps = [Step(*step) for step in kept["run"]["steps"]]
        run = Run(**{**kept["run"], "steps": steps})
        send(client, collect(run), kept["tags"])
        fileio.remove(file)
        yield run.id


def send(client: MlflowClient, content: Content, tags: Mapping[str, str]) -> str:
    """Send a run; return the `identity` of the model that it pushed, empty without one.

    A second call completes what an interrupted one has sent, and repeats nothing.
    """
    run = content.run
    info = _log(client, run, run.id, tags, flat_settings(run.settings), _metrics(content))
    client.log_inputs(info.run_id, _datasets(run))
    with tempfile.TemporaryDirectory() as folder:
        io_utils.write_string_file(os.path.join(folder, "report.html"), render(content))
        for name in ("evaluation", "model_run"):
            if uri := run.uris.get(name):
                io_utils.copy_dir(uri, os.path.join(folder, name))
        client.log_artifacts(info.run_id, folder)
    trials = run.uris.get("trials")
    for number, trial in enumerate(read_json(trials, "tuner_results.json") if trials else ()):
        score = ("val_loss", trial.pop("score", math.nan), 0)
        parent = {"mlflow.parentRunId": info.run_id}
        child = _log(client, run, f"{run.id}-trial-{number}", parent, trial, [score])
        client.set_terminated(child.run_id)
    pushed = _register(client, info.run_id, run) if run.pushed_to else ""
    ended = info.start_time + round(1e3 * run.seconds)
    status = "FAILED" if run.error else "FINISHED"
    client.set_terminated(info.run_id, status, ended)
    return pushed


def registered(client: MlflowClient, name: str) -> dict[str, ModelVersion]:
    """Return `identity` of a model -> its version of the registered model."""
    found = client.search_model_versions(f"name = '{name}'")
    return {version.tags.get(MODEL_TAG, ""): version for version in found}


def move_champion(client: MlflowClient, name: str, served: str) -> str:
    """Move the alias to the version of the served model; return a name of that version.

    Without such a version, remove the alias from the model that is served no more.
    """
    versions = registered(client, name)
    if served in versions:
        client.set_registered_model_alias(name, CHAMPION, versions[served].version)
        return f"version {versions[served].version}"
    if versions:
        client.delete_registered_model_alias(name, CHAMPION)
    return "no version"


def _log(
    client: MlflowClient,
    run: Run,
    name: str,
    tags: Mapping[str, str],
    params: Mapping[str, Any],
    metrics: Iterable[tuple[str, float, int]],
) -> mlflow.entities.RunInfo:
    """Log a run, or a child of it, without metrics (name, value, step) that are NaN."""
    import mlflow
    from mlflow.entities import Metric, Param, RunTag

    experiment = mlflow.set_experiment(run.name).experiment_id
    if found := client.search_runs([experiment], f"tags.{RUN_TAG} = '{name}'"):
        info = found[0].info
    else:
        started = round(1e3 * run.started) if run.started else None
        info = client.create_run(experiment, started, {RUN_TAG: name}, name).info
    client.log_batch(
        info.run_id,
        # MLflow ignores a metric that it has with the same step and time.
        [Metric(key, y, info.start_time, x) for key, y, x in metrics if math.isfinite(y)],
        [Param(key, str(value)) for key, value in params.items()],
        [RunTag(key, value) for key, value in tags.items() if value],
    )
    return info


def _metrics(content: Content) -> Iterator[tuple[str, float, int]]:
    """Yield name, value and step: over the steps, of the epochs, and at the end."""
    training = content.training
    for point in training.get("curve", []):
        for name in ("loss", "accuracy", "learning_rate"):
            yield f"train_{name}", point[name], point["step"]
    for epoch, metrics in enumerate(training.get("epoch_metrics", []), 1):
        for name, value in metrics.items():
            yield f"epoch_{name}", value, epoch * training["steps_per_epoch"]
    last = training.get("steps", 0)
    for name in ("examples_per_second", "seconds", "peak_rss_bytes"):
        if name in training:
            yield name, training[name], last
    if content.evaluation:
        for metric in KEY_FIGURES:
            yield metric.title, metric.value(content.evaluation.candidate), last


def _datasets(run: Run) -> list[Any]:
    """Return the splits, each with a digest of its content."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    if "examples" not in run.uris:
        return []
    found = []
    for folder in sorted(fileio.glob(os.path.join(run.uris["examples"], "Split-*"))):
        split = os.path.basename(folder).removeprefix("Split-")
        digest = stored.content_digest([os.path.join(folder, "*")])
        # MLflow's limit is 36 characters.
        digest = hashlib.sha256(digest.encode()).hexdigest()[:32]
        name, where = f"{run.name}/{split}", json.dumps({"uri": folder})
        dataset = Dataset(name, digest, "tfrecord", where)
        found.append(DatasetInput(dataset, [InputTag("mlflow.data.context", split)]))
    return found


def _register(client: MlflowClient, run_id: str, run: Run) -> str:
    """Make the pushed model a version of the registered model, unless it is one already."""
    model = path_utils.serving_model_path(run.uris["model"])
    content = identity(model)
    if content in registered(client, run.name):
        return content
    import mlflow

    with tempfile.TemporaryDirectory() as folder:
        saved_model, saved = (os.path.join(folder, name) for name in ("saved_model", "model"))
        io_utils.copy_dir(model, saved_model)
        mlflow_format.save(saved_model, saved)
        client.log_artifacts(run_id, saved, "model")
    tags = {MODEL_TAG: content, "pushed_to": run.pushed_to}
    mlflow.register_model(f"runs:/{run_id}/model", run.name, None, tags=tags)
    return content


def _tags(content: Content) -> dict[str, str]:
    run = content.run
    checks = content.evaluation.checks() if content.evaluation else []
    failed = [check.sentence for check in checks if not check.passed]
    return {
        "result": result(content),
        "host": platform.node(),
        "mlflow.note.content": run.error or "\n".join(failed),
        **{f"version.{name}": version for name, version in run.versions.items()},
    }
