"""Kubeflow Pipelines: one run through `kfp.Client`, with an end to every wait and no second try."""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import kfp
import urllib3
from kfp import client as kfp_client
from kfp.client import set_volume_credentials
from kfp_server_api.exceptions import ApiException
from kfp_server_api.rest import RESTClientObject

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms.follow import (
    NoAnswer,
    Status,
    SubmitError,
    Task,
    no_connection,
    one_line,
    unknown_whether,
)
from platforms.kubeflow.checks import PORT_FORWARD
from platforms.kubeflow.input_cache import file_to_send
from platforms.package import Package

CONNECT_AND_READ_SECONDS = (5.0, 60.0)
HEALTH_SECONDS = (5.0, 10.0)
PAUSES = (1.0, 2.0, 4.0)
"""Seconds between the tries of a question that changes nothing."""

UI_VARIABLE = "KF_PIPELINES_UI_ENDPOINT"
TOKEN_VARIABLE = kfp_client.KF_PIPELINES_SA_TOKEN_ENV


@dataclass(frozen=True)
class KubeflowRun:
    """A run on Kubeflow Pipelines; see `platforms.follow.Run`."""

    client: Any
    run_id: str
    name: str
    link: str
    logs: str

    def status(self) -> Status:
        """See `platforms.follow.Run`."""
        try:
            run = self.client.get_run(self.run_id)
        except urllib3.exceptions.HTTPError as error:
            raise no_connection(error) from None
        except ApiException as error:
            lasting = error.status and error.status < 500 and error.status != 429
            raise (SubmitError if lasting else NoAnswer)(_server_message(error)) from None
        details = run.run_details.task_details if run.run_details else None
        tasks = tuple(
            Task(task.display_name or "", task.state or "", _message(task.error))
            for task in details or []
        )
        return Status(run.state or "", tasks, _message(run.error))


def start(
    config: PipelineConfig, package: Package, values: dict[str, Any], name: str
) -> KubeflowRun:
    """Submits the pipeline as a run called `name`; returns as soon as the server has taken it.

    Raises:
      ConfigError: nobody answers at `kubeflow.endpoint`, what answers is not the API, or it does
        not let us in.
      SubmitError: the server refused the run, or it is not known whether it took it.
    """
    settings = config.kubeflow
    endpoint = (settings.endpoint or "").rstrip("/")
    with _quiet(), _told(config):
        client, several_users = _connect(endpoint)
        # A server for a single user refuses any namespace.
        namespace = settings.namespace if several_users else None
        experiment = client.create_experiment(settings.experiment, namespace=namespace)
    root = config.paths.root
    try:
        with _quiet(), _told(config), file_to_send(config, package, values) as file:
            run = client.run_pipeline(
                experiment.experiment_id,
                name,
                pipeline_package_path=str(file),
                params=values,
                pipeline_root=root if "://" in root else None,
                # True would also switch it on for tasks that the compiled file leaves it off for.
                enable_caching=None if config.cache else False,
                service_account=settings.service_account,
            )
    except NoAnswer as error:
        raise unknown_whether(error, name, f"{_ui(endpoint)}/#/runs") from None
    return KubeflowRun(
        client,
        run.run_id,
        name,
        f"{_ui(endpoint)}/#/runs/details/{run.run_id}",
        f"kubectl logs -n {settings.namespace} -l pipeline/runid={run.run_id} "
        "--all-containers --prefix --tail=50",
    )


def _ui(endpoint: str) -> str:
    return os.environ.get(UI_VARIABLE, endpoint).rstrip("/")


class _Health(NamedTuple):
    multi_user: bool


class _Rest(RESTClientObject):
    """Without a timeout of its own a request of kfp's waits for ever."""

    def request(self, *args: Any, _request_timeout: Any = None, **kwargs: Any) -> Any:
        return super().request(
            *args, _request_timeout=_request_timeout or CONNECT_AND_READ_SECONDS, **kwargs
        )


class _Client(kfp.Client):
    """kfp's client, whose constructor asks for the server's health and may take half a minute to
    say, with five tracebacks, that there is none."""

    def get_kfp_healthz(self, sleep_duration: int = 5) -> _Health:
        """Asks until there is an answer, a few seconds at most; the answer has to be the API's."""
        api = self._healthz_api.api_client
        if not isinstance(api.rest_client, _Rest):
            # What was never sent may be sent again, anything else not: it may have been a POST.
            api.configuration.retries = urllib3.Retry(
                None, connect=1, read=0, other=0, redirect=5, respect_retry_after_header=False
            )
            api.rest_client = _Rest(api.configuration)
        for pause in (*PAUSES, None):
            try:
                health = api.call_api(
                    "/apis/v2beta1/healthz",
                    "GET",
                    header_params={"Accept": "application/json"},
                    response_type="object",
                    auth_settings=["Bearer"],
                    _request_timeout=HEALTH_SECONDS,
                    _return_http_data_only=True,
                )
                break
            except ApiException as error:
                if pause is None or not error.status or error.status < 500:
                    raise
                time.sleep(pause)
        if not isinstance(health, dict):
            raise ApiException(status=404, reason="a web page, perhaps one to sign in")
        if health.get("apiServerReady") is False:
            raise ApiException(status=503, reason="the UI answers, the API behind it does not")
        return _Health(bool(health.get("multi_user")))


def _connect(endpoint: str) -> tuple[_Client, bool]:
    """The client, and whether the server tells users apart."""
    # Not the namespace: the client would also send it where the server refuses it.
    client = _Client(host=endpoint, credentials=_credentials())
    return client, client.get_kfp_healthz().multi_user


def _credentials() -> Any:
    """The Kubernetes token that KF_PIPELINES_SA_TOKEN_PATH names, or that the pod was given."""
    named = os.environ.get(TOKEN_VARIABLE)
    if named and not Path(named).is_file():
        raise ConfigError(f"{TOKEN_VARIABLE}: no file {named!r}; it holds the token to sign in")
    if named or Path(kfp_client.KF_PIPELINES_SA_TOKEN_PATH).is_file():
        return set_volume_credentials.ServiceAccountTokenVolumeCredentials()
    return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """kfp prints links of its own, and warns about servers older than any that we can use."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _told(config: PipelineConfig) -> Iterator[None]:
    """Turns what kfp raises into one line that names the setting to look at."""
    settings = config.kubeflow
    at = f"kubeflow.endpoint: {settings.endpoint}"
    try:
        yield
    except urllib3.exceptions.HTTPError as error:
        problem = no_connection(error)
        if problem.sent:
            raise NoAnswer(f"{at}: {problem}") from None
        raise ConfigError(
            f"{at} cannot be reached ({problem}); is Kubeflow Pipelines there? "
            f"From outside the cluster: `{PORT_FORWARD}`"
        ) from None
    except ApiException as error:
        text, status = _server_message(error), error.status
        # Servers before 2.0 answer 500 to somebody they do not know.
        if status == 401 or "Unauthenticated" in text:
            raise ConfigError(
                f"{at} wants to know who asks ({text}); name a file with a token in "
                f"{TOKEN_VARIABLE}: `kubectl create token default-editor -n {settings.namespace} "
                "--audience pipelines.kubeflow.org`"
            ) from None
        if status == 403:
            raise ConfigError(
                f"kubeflow.namespace: not allowed to run pipelines in {settings.namespace!r} "
                f"({text})"
            ) from None
        if status == 404:
            raise ConfigError(
                f"{at} is not the Kubeflow Pipelines API, or asks to sign in ({text}); after "
                f"`{PORT_FORWARD}` it is http://127.0.0.1:8080, on a Kubeflow platform it ends in "
                "/pipeline"
            ) from None
        if status and status < 500 and status != 429:
            raise SubmitError(f"Kubeflow Pipelines refused the run: {text}") from None
        raise NoAnswer(f"{at}: {text}") from None


def _server_message(error: ApiException) -> str:
    body = error.body or ""
    try:
        answer = json.loads(body)
        text = answer.get("message") or answer.get("error") or ""
    except (ValueError, AttributeError):
        text = "" if body.lstrip().startswith("<") else body
    return one_line(f"{error.status} {text or error.reason or ''}".strip())


def _message(error: Any) -> str:
    return (error.message or "") if error else ""
