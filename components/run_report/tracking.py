"""The tracking of runs: a run is sent to MLflow at its end, or later if the server was unavailable.

A run is sent from the files that the report describes. Therefore a tracking server that does not
respond delays a run by only one timeout, and `amazon-reviews runs --send` can send the run later.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import re
import socket
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf
from absl import logging
from tfx.dsl.io import fileio
from tfx.utils import io_utils, path_utils

from components.properties import TRACKING
from components.run_report import summary
from components.run_report.content import Content, collect
from components.run_report.history import Run, Step
from components.run_report.mlflow_run import (
    NOTE_TAG,
    RESULT_TAG,
    VERDICT_TAG,
    Record,
    find_model,
    lost_artifacts,
    move_champion,
    send,
)
from components.run_report.outcome import Outcome
from components.run_report.verdict import judge
from core.errors import (
    ConfigError,
    InputError,
    ServerError,
    UserError,
    cause,
    storage_errors,
)
from core.files import lock_file
from core.storage import is_url
from serving.identity import identity

if TYPE_CHECKING:
    from mlflow import MlflowClient

CLIENT = "mlflow-skinny>=3.17,<4"
"""The package of MLflow's client, as in `pyproject.toml`."""
PLATFORM, COMMIT = "platform", "mlflow.source.git.commit"
"""Tags of a run: `local`, `kubeflow` or `vertex`, and the commit of its code."""
_OPEN_RUN = "MLFLOW_RUN_ID"
"""The environment variable with the id of the run that the platform has opened in MLflow. Kubeflow
Pipelines 2.17 sets it."""
_RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
_ENVIRONMENT = {
    # For HTTP 429 and 5xx. `connected` has already failed if the server does not respond.
    _RETRIES: "3",
    # A server may require a delay of hours.
    "MLFLOW_HTTP_RESPECT_RETRY_AFTER_HEADER": "false",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
_OF_CONNECTIONS = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)
"""OSErrors that are not those of a file."""


class TrackingServer(NamedTuple):
    """The tracking server of a run.

    Attributes:
      uri: the setting `tracking.mlflow`.
      unsent: the folder for the runs that could not be sent, local or remote.
      name: the name of the pipeline, which is also that of the experiment and of the registered
        model.
      tags: the tags PLATFORM and COMMIT of the run.
    """

    uri: str
    unsent: str
    name: str
    tags: dict[str, str]

    def to_json(self) -> str:
        """Return the value of the environment variable TRACKING, see `from_environment`."""
        return json.dumps(self)


class Sent(NamedTuple):
    """The result of an attempt to send a run.

    Attributes:
      run: the id of the run, or the name of its file if the file cannot be read.
      problem: the reason why the run was not sent, and the file; empty if the run was sent.
    """

    run: str
    problem: str = ""


def check_client() -> None:
    """Check that MLflow's client is installed.

    Raises:
      ConfigError: MLflow is not installed.
    """
    if importlib.util.find_spec("mlflow") is None:
        raise ConfigError(
            f"tracking.mlflow: MLflow is not installed; run pip install '{CLIENT}', or build the "
            "image by `amazon-reviews image build`"
        )


def from_environment() -> TrackingServer | None:
    """Return the tracking server of the run of this process; None if it has none."""
    value = os.environ.get(TRACKING)
    return TrackingServer(*json.loads(value)) if value else None


def run_id_from_output(uri: str) -> str:
    """Return the id of a run on a cluster, from the URI of an output of one of its steps.

    TFX does not provide the id on a cluster. The URI is ROOT/PIPELINE/RUN/TASK/…/OUTPUT on Kubeflow
    Pipelines, where RUN is a UUID, and ROOT/PROJECT/RUN/TASK/OUTPUT on Vertex AI Pipelines.

    Args:
      uri: the URI of the output.

    Raises:
      IndexError: the URI has neither form.
    """
    found = re.search(r"/([0-9a-f]{8}(-[0-9a-f]{4}){3}-\w{12})/", uri)
    return found[1] if found else uri.rstrip("/").split("/")[-3]


@contextlib.contextmanager
def connected(uri: str) -> Iterator[MlflowClient]:
    """Yield a client of MLflow with short timeouts.

    The first request has no retries, so the error for a server that does not respond takes one
    timeout. Later requests have retries after HTTP 429 and 5xx.

    Args:
      uri: the URI of the tracking server.

    Raises:
      ServerError: a request, in this function or in the context, failed, or a file could not be
        read or written.
      UserError: the context raised it.
    """
    os.environ.update({**_ENVIRONMENT, **os.environ})
    try:
        import mlflow

        mlflow.set_tracking_uri(uri)
        client = mlflow.MlflowClient()
        _check_response(client)
        yield client
    except UserError:
        raise
    except Exception as error:  # MLflow raises the errors of many libraries.
        if _is_of_a_file(error):
            raise ServerError(
                "tracking.mlflow: a file of this machine or of the run could not be read or "
                f"written: {cause(error)}"
            ) from None
        if _does_not_respond(error):
            raise ServerError(
                f"tracking.mlflow: {uri} does not respond ({cause(_root(error))}); start the "
                "server or correct the address"
            ) from None
        raise ServerError(f"tracking.mlflow: {uri}: {cause(error)}") from None


def track(tracking: TrackingServer, content: Content) -> None:
    """Send a run. If this fails, log one warning and keep the run for `send_unsent`.

    Args:
      tracking: the tracking server.
      content: the content of the report of the run.

    Raises:
      OSError, tensorflow.errors.OpError: the run was not sent, and its file cannot be written.
    """
    run = content.run
    tags = {**tracking.tags, **_tags(content)}
    open_run = os.environ.get(_OPEN_RUN, "")
    record = Record(content, tags, _pushed_content(run), open_run=open_run)
    try:
        with connected(tracking.uri) as client:
            if pushed := send(client, record):
                move_champion(client, tracking.name, pushed)
    except UserError as error:
        _keep(tracking.unsent, record)
        remedy = "`amazon-reviews runs --send` sends it"
        logging.warning("%s; the run %s was not sent; %s", error, run.id, remedy)


def send_unsent(client: MlflowClient, unsent: str) -> Iterator[Sent]:
    """Send the runs that were not sent, one after the other; yield the result of each attempt.

    A run that cannot be sent stays in the folder, and the others are sent. If several processes use
    the same local folder, only one of them sends at a time.

    Args:
      client: a client of `connected`.
      unsent: `TrackingServer.unsent`.

    Raises:
      ServerError: the server does not respond.
      ConfigError: the folder cannot be locked.
    """
    with _sole_sender(unsent):
        for file in sorted(fileio.glob(os.path.join(unsent, "*.json"))):
            try:
                record = _read(file)
                if record is None:
                    continue
                send(client, record)
            except Exception as error:  # MLflow raises the errors of many libraries.
                if _does_not_respond(error):
                    raise
                problem = f"{file}: {cause(error)}; to give the run up, delete this file"
                yield Sent(os.path.basename(file).removesuffix(".json"), problem)
                continue
            with contextlib.suppress(fileio.NotFoundError):  # Another machine has sent it too.
                fileio.remove(file)
            yield Sent(record.content.run.id)


def _keep(unsent: str, record: Record) -> None:
    """Write a run to the folder of the runs that were not sent."""
    run = record.content.run
    kept = {
        "run": {
            **vars(run),
            "outcome": run.outcome and run.outcome.to_json(),
            "outputs": {},
        },
        "tags": record.tags,
        "model": record.model,
        "open_run": record.open_run,
        "lacks": _lacks(record.content),
    }
    file = os.path.join(unsent, f"{run.id}.json")
    # The file is renamed, so that no reader finds an incomplete file.
    io_utils.write_string_file(f"{file}.partial", json.dumps(kept))
    fileio.rename(f"{file}.partial", file, overwrite=True)


def _read(file: str) -> Record | None:
    """Return the run in a file of `_keep`; None if the file no longer exists.

    Raises:
      InputError: the file is damaged, or a part of the run has been lost since `_keep`.
    """
    try:
        with tf.io.gfile.GFile(file) as stream:
            text = stream.read()
    except tf.errors.NotFoundError:
        return None
    try:
        kept = json.loads(text)
        stored = kept["run"]
        steps = [Step(*step) for step in stored["steps"]]
        outcome = Outcome.from_json(stored["outcome"]) if stored["outcome"] else None
        run = Run(**{**stored, "steps": steps, "outcome": outcome})
        tags, model = dict(kept["tags"]), str(kept.get("model", ""))
        open_run, lacked = str(kept.get("open_run", "")), list(kept.get("lacks", ()))
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"is no run that was kept for MLflow ({cause(error)})") from None
    folder = find_model(run, model) if run.pushed_to else ""
    content = collect(run, folder or None)
    if lost := [line for line in _lacks(content) if line not in lacked]:
        raise InputError(f"a part of the run was lost: {'; '.join(lost)}")
    return Record(content, tags, model, folder, open_run)


def _lacks(content: Content) -> list[str]:
    """Return a line for each part of a run that is missing or cannot be read."""
    return [*lost_artifacts(content.run).values(), *content.problems]


def _pushed_content(run: Run) -> str:
    """Return the `identity` of the pushed model; empty if there is none, or it cannot be read."""
    if not run.pushed_to:
        return ""
    try:
        return identity(path_utils.serving_model_path(run.uris["model"]))
    except (InputError, OSError, tf.errors.OpError):  # A record of a run must not fail the run.
        return ""


@contextlib.contextmanager
def _sole_sender(unsent: str) -> Iterator[None]:
    """Hold the lock of a local folder; wait until no other process holds it.

    A bucket has no locks, so two processes may send a run at the same time. `mlflow_run` prevents
    that MLflow then has the run twice.

    Raises:
      ConfigError: the folder cannot be locked.
    """
    if is_url(unsent) or not os.path.isdir(unsent):
        yield
        return
    path = os.path.join(unsent, ".lock")
    try:
        lock = lock_file(path, waits=True)
    except OSError as error:
        raise ConfigError(f"paths.root: {path} cannot be locked: {error.strerror}") from None
    try:
        yield
    finally:
        os.close(lock)


def _check_response(client: MlflowClient) -> None:
    """Raise the error of MLflow's client if the server does not respond within one timeout."""
    configured = os.environ[_RETRIES]
    os.environ[_RETRIES] = "0"
    try:
        client.search_experiments(max_results=1)
    except Exception as error:
        # The next requests handle any other error.
        if _does_not_respond(error):
            raise
    finally:
        os.environ[_RETRIES] = configured


def _does_not_respond(error: BaseException) -> bool:
    """Return whether a request of MLflow's client failed without a response."""
    import requests

    of_requests = (requests.ConnectionError, requests.Timeout)
    return any(isinstance(each, of_requests) for each in _chain(error))


def _root(error: BaseException) -> BaseException:
    """Return the first error of a chain, such as that of the socket."""
    *_, root = _chain(error)
    return root


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those during whose handling it was raised."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _is_of_a_file(error: Exception) -> bool:
    """Return whether an error is one of a file. Those of connections are OSErrors too."""
    import requests

    of_connections = (requests.RequestException, *_OF_CONNECTIONS)
    return isinstance(error, storage_errors()) and not isinstance(error, of_connections)


def _tags(content: Content) -> dict[str, str]:
    run, decision = content.run, summary.decision(content)
    judged = judge(decision)
    return {
        RESULT_TAG: decision.result,
        VERDICT_TAG: judged.sentence,
        NOTE_TAG: judged.sentence,
        "host": platform.node(),
        **({"span": run.span} if run.span else {}),
        **({"alarm": content.comparison.severity} if content.comparison else {}),
        **{f"version.{name}": version for name, version in run.versions.items()},
    }
