"""Send a run to MLflow: its settings, metrics, artifacts, datasets, trials and pushed model.

A run is sent once, at its end, from the files that the report describes. So a tracking server that
does not respond costs a run at most `SECONDS`, and a later `amazon-reviews runs --send` sends the
same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import platform
import re
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from absl import logging
from tfx.dsl.io import fileio
from tfx.utils import io_utils, path_utils

from components.run_report.history import Sources, Step
from components.run_report.page import Content, collect, render, result
from core.errors import cause
from core.settings import flat_settings
from serving import mlflow_model
from trainer_module.inputs import stored

if TYPE_CHECKING:
    import mlflow.entities
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion

SECONDS = 45.0
"""The longest time that a run waits for MLflow."""
CHAMPION = "champion"
"""The alias of the served version of the registered model."""
RUN_TAG, PUSHED_TAG = "pipeline_run_id", "pushed_version"
"""The tag of a run with the id of the pipeline's run, and the tag of a version of the registered
model with the name of the pushed version."""
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
_EXAMPLES = ["Great phone, I use it every day.", "It broke after a week."]
VARIABLE = "AMAZON_REVIEWS_TRACKING"
"""The environment variable with the `Tracking` of a run, as JSON. A platform sets it for the
processes of a run. It is no property of a component, because it does not affect any output."""


@dataclasses.dataclass(frozen=True)
class Tracking:
    """The tracking server of a run.

    Attributes:
      uri: see `tracking.mlflow` of the settings.
      unsent: the folder for the runs that could not be sent.
      name: the name of the pipeline, of its experiment and of the registered model.
      commit: the commit of the code; empty if the code does not run from a checkout.
      platform: `local`, `kubeflow` or `vertex`.
    """

    uri: str
    unsent: str
    name: str
    commit: str
    platform: str

    def to_json(self) -> str:
        """Return the value of `VARIABLE`."""
        return json.dumps(dataclasses.asdict(self))


def run_of_output(uri: str) -> str:
    """Return the id of a cluster's run from the URI of an output of one of its steps.

    TFX does not know the id there. Kubeflow Pipelines writes ROOT/PIPELINE/RUN/TASK/…/OUTPUT, where
    RUN is a UUID, and Vertex AI Pipelines writes ROOT/PROJECT/RUN/TASK/OUTPUT.
    """
    parts = uri.rstrip("/").split("/")
    return next(
        (part for part in parts if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-\w{12}", part)),
        parts[-3],
    )


def from_environment() -> Tracking | None:
    """Return the tracking of the run of this process; None without one."""
    value = os.environ.get(VARIABLE)
    return Tracking(**json.loads(value)) if value else None


def track(tracking: Tracking, content: Content) -> None:
    """Send a run, or log one warning and keep the run for `send_unsent`."""
    problem = f"no response within {SECONDS:g} s"

    def attempt() -> None:
        nonlocal problem
        try:
            send(tracking, content)
            problem = ""
        except Exception as error:  # MLflow raises the errors of many libraries.
            problem = cause(error)

    # A daemon, because Python waits for the threads of its own pools before it exits.
    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if not problem:
        return
    run_id = content.sources.run_id
    remedy = "`amazon-reviews runs --send` sends it"
    try:
        fileio.makedirs(tracking.unsent)
        with fileio.open(os.path.join(tracking.unsent, f"{run_id}.json"), "w") as file:
            file.write(json.dumps(dataclasses.asdict(content.sources)))
    except Exception as error:  # A folder that cannot be written must not fail the run.
        remedy = f"{tracking.unsent} cannot be written: {cause(error)}"
    logging.warning(
        "tracking.mlflow: the run %s was not sent to %s: %s; %s",
        run_id,
        tracking.uri,
        problem,
        remedy,
    )


def send_unsent(tracking: Tracking, killed: Sequence[Sources]) -> Iterator[str]:
    """Send the runs that were not sent; yield the id of each one that is now in MLflow.

    Args:
      tracking: the tracking server.
      killed: the runs that did not reach their end, and may have been sent since.

    Raises:
      Exception: MLflow does not respond, or refuses a request.
    """
    for name in sorted(fileio.listdir(tracking.unsent)) if fileio.exists(tracking.unsent) else ():
        file = os.path.join(tracking.unsent, name)
        with fileio.open(file) as stream:
            values = json.loads(stream.read())
        steps = [Step(*step) for step in values.pop("steps")]
        send(tracking, collect(Sources(**values, steps=steps)))
        fileio.remove(file)
        yield values["run_id"]
    if not killed:
        return
    client = connect(tracking.uri)
    experiment = _experiment(client, tracking.name)
    for source in killed:
        if not _find(client, experiment, source.run_id):
            send(tracking, collect(source))
            yield source.run_id


def connect(uri: str) -> MlflowClient:
    """Return a client with short timeouts, unless the environment sets others."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    return MlflowClient(uri)


def send(tracking: Tracking, content: Content) -> None:
    """Send a run. A second call completes what an interrupted one has sent, and repeats nothing."""
    client = connect(tracking.uri)
    source = content.sources
    experiment = _experiment(client, source.name)
    run = _run(client, experiment, source)
    run_id, started = run.info.run_id, run.info.start_time
    _log(client, run, flat_settings(source.settings), _metrics(content), _tags(tracking, content))
    client.log_inputs(run_id, _datasets(source))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "report.html").write_text(render(content), encoding="utf-8")
        for name in ("evaluation", "model_run"):
            if uri := source.uris.get(name):
                io_utils.copy_dir(uri, os.path.join(folder, name))
        client.log_artifacts(run_id, folder)
    for number, trial in enumerate(_trials(source)):
        child = _run(client, experiment, source, f"-trial-{number}", {"mlflow.parentRunId": run_id})
        score = trial.pop("score", None)
        _log(client, child, trial, [] if score is None else [("val_loss", score, 0)])
        client.set_terminated(child.info.run_id)
    if source.pushed_to:
        _register(client, run, source)
    ended = started + round(1e3 * sum(step.seconds for step in source.steps))
    status = {"failed": "FAILED", "unfinished": "KILLED"}.get(result(content), "FINISHED")
    client.set_terminated(run_id, status, ended)


def move_champion(client: MlflowClient, name: str, pushed: str) -> str | None:
    """Move the alias to the version of a pushed model; return that version, None without one."""
    version = _version(client, name, pushed)
    if version is not None:
        client.set_registered_model_alias(name, CHAMPION, version)
    return version


def champion(client: MlflowClient, name: str) -> ModelVersion | None:
    """Return the version of the registered model that has the alias."""
    from mlflow.exceptions import MlflowException

    try:
        return client.get_model_version_by_alias(name, CHAMPION)
    except MlflowException as error:
        # The first one is the error for a missing model, the second one for a missing alias.
        if error.error_code in ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"):
            return None
        raise


def _experiment(client: MlflowClient, name: str) -> str:
    """Return the id of the experiment of a pipeline, which is created unless it exists."""
    found = client.get_experiment_by_name(name)
    return str(found.experiment_id if found else client.create_experiment(name))


def _find(client: MlflowClient, experiment: str, name: str) -> mlflow.entities.Run | None:
    """Return the run whose `RUN_TAG` is `name`."""
    return next(iter(client.search_runs([experiment], f"tags.{RUN_TAG} = '{name}'")), None)


def _run(
    client: MlflowClient,
    experiment: str,
    source: Sources,
    suffix: str = "",
    tags: Mapping[str, str] = MappingProxyType({}),
) -> mlflow.entities.Run:
    """Return the run in MLflow, or a child of it; it is created unless it exists."""
    name = source.run_id + suffix
    if found := _find(client, experiment, name):
        return found
    started = round(1e3 * (source.started or time.time()))
    return client.create_run(experiment, started, {RUN_TAG: name, **tags}, name)


def _log(
    client: MlflowClient,
    run: mlflow.entities.Run,
    params: Mapping[str, Any],
    metrics: Iterable[tuple[str, float, int]],
    tags: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Log parameters, metrics (name, value, step) and tags, without NaN and empty tags."""
    from mlflow.entities import Metric, Param, RunTag

    # MLflow ignores a metric that it has with the same step and time.
    logged = [
        Metric(name, float(value), run.info.start_time, step)
        for name, value, step in metrics
        if math.isfinite(value)
    ]
    client.log_batch(
        run.info.run_id,
        logged,
        [Param(name, str(value)) for name, value in params.items()],
        [RunTag(name, value) for name, value in tags.items() if value],
    )


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
    for figure in content.evaluation.metrics if content.evaluation else ():
        yield figure.name, figure.value, last


def _datasets(source: Sources) -> list[Any]:
    """Return the splits, each with a digest of its content."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    if "examples" not in source.uris:
        return []
    found = []
    for folder in sorted(fileio.glob(os.path.join(source.uris["examples"], "Split-*"))):
        split = os.path.basename(folder).removeprefix("Split-")
        digest = stored.content_digest([os.path.join(folder, "*")])
        where = json.dumps({"uri": folder})
        short = hashlib.sha256(digest.encode()).hexdigest()[:32]
        dataset = Dataset(f"{source.name}/{split}", short, "tfrecord", where)
        found.append(DatasetInput(dataset, [InputTag("mlflow.data.context", split)]))
    return found


def _trials(source: Sources) -> list[dict[str, Any]]:
    """Return the parameters of each trial of the Tuner, and its `score`, the validation loss."""
    if "trials" not in source.uris:
        return []
    with fileio.open(os.path.join(source.uris["trials"], "tuner_results.json")) as file:
        trials: list[dict[str, Any]] = json.loads(file.read())
    return trials


def _register(client: MlflowClient, run: mlflow.entities.Run, source: Sources) -> None:
    """Make the pushed model a version of the registered model, and move the alias to it.

    The alias stays at the model of a later run, because a run may be sent late.
    """
    from mlflow.exceptions import MlflowException

    version = _version(client, source.name, source.pushed_version)
    if version is None:
        with tempfile.TemporaryDirectory() as folder:
            _save_model(source, folder)
            client.log_artifacts(run.info.run_id, os.path.join(folder, "model"), "model")
        with contextlib.suppress(MlflowException):  # It exists.
            client.create_registered_model(source.name)
        tags = {PUSHED_TAG: source.pushed_version}
        model = f"runs:/{run.info.run_id}/model"
        version = client.create_model_version(source.name, model, run.info.run_id, tags).version
    now = champion(client, source.name)
    served = client.get_run(now.run_id) if now and now.run_id else run
    if served.info.start_time <= run.info.start_time:
        client.set_registered_model_alias(source.name, CHAMPION, version)


def _version(client: MlflowClient, name: str, pushed: str) -> str | None:
    found = client.search_model_versions(f"name = '{name}' and tags.{PUSHED_TAG} = '{pushed}'")
    return str(found[0].version) if found else None


def _save_model(source: Sources, folder: str) -> None:
    """Write the model in MLflow's format, with its signature and an example."""
    import pandas as pd
    import tensorflow as tf
    from mlflow import pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    saved_model = os.path.join(folder, "saved_model")
    io_utils.copy_dir(path_utils.serving_model_dir(source.uris["model"]), saved_model)
    inputs: Any = [ColSpec("string", "text")]
    outputs: Any = [ColSpec("float", "probability"), ColSpec("long", "label")]
    pyfunc.save_model(
        os.path.join(folder, "model"),
        loader_module=mlflow_model.__name__.rpartition(".")[2],
        code_paths=[str(mlflow_model.__file__)],
        data_path=saved_model,
        signature=ModelSignature(Schema(inputs), Schema(outputs)),
        input_example=pd.DataFrame({"text": _EXAMPLES}),
        pip_requirements=[f"tensorflow=={tf.__version__}", "pandas"],
    )


def _tags(tracking: Tracking, content: Content) -> dict[str, str]:
    source = content.sources
    checks = content.evaluation.checks if content.evaluation else []
    failed = [check.sentence for check in checks if not check.passed]
    return {
        "result": result(content),
        "platform": tracking.platform,
        "host": platform.node(),
        "mlflow.source.name": source.name,
        "mlflow.source.type": "JOB",
        "mlflow.source.git.commit": tracking.commit,
        "mlflow.note.content": source.failure or "\n".join(failed),
        **{f"version.{name}": version for name, version in source.versions.items()},
    }
