"""Runs and recurring runs on Kubeflow Pipelines by `kfp.Client`: with timeouts, and only once."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator
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
from platforms.checks import PORT_FORWARD, cluster_name
from platforms.follow import (
    ENDS,
    NoResponse,
    Status,
    SubmitError,
    Task,
    no_response,
    one_line,
    possibly_submitted,
)
from platforms.kubeflow.failed_pods import last_errors, log_command
from platforms.kubeflow.input_cache import file_to_send
from platforms.schedules import Schedule
from platforms.submission import Package

CONNECT_AND_READ_SECONDS = (5.0, 60.0)
HEALTH_SECONDS = (5.0, 10.0)
_PAGE = 100
PAUSES = (1.0, 2.0, 4.0)
"""Seconds between the retries of a read-only request."""

UI_VARIABLE = "KF_PIPELINES_UI_ENDPOINT"
TOKEN_VARIABLE = kfp_client.KF_PIPELINES_SA_TOKEN_ENV


@dataclass(frozen=True)
class KubeflowRun:
    """A run on Kubeflow Pipelines; see `platforms.follow.Run`."""

    client: Any
    run_id: str
    name: str
    link: str
    namespace: str

    @property
    def logs(self) -> str:
        """See `platforms.follow.Run`."""
        return log_command(self.namespace, self.run_id)

    def last_errors(self) -> list[str]:
        """See `platforms.follow.Run`."""
        return last_errors(self.namespace, self.run_id)

    def status(self) -> Status:
        """See `platforms.follow.Run`."""
        try:
            run = self.client.get_run(self.run_id)
            cancelled = run.state == "FAILED" and self.client.is_cancelled(run)
        except urllib3.exceptions.HTTPError as error:
            raise no_response(error) from None
        except ApiException as error:
            permanent = error.status and error.status < 500 and error.status != 429
            raise (SubmitError if permanent else NoResponse)(_server_message(error)) from None
        details = run.run_details.task_details if run.run_details else None
        tasks = tuple(
            Task(task.display_name or "", task.state or "", _message(task.error))
            for task in details or []
        )
        state = "CANCELED" if cancelled else run.state
        return Status(state or "", tasks, _message(run.error))


def start(
    config: PipelineConfig, package: Package, values: dict[str, Any], name: str
) -> KubeflowRun:
    """Submit the pipeline as a run called `name`; return when the server has accepted it.

    Raises:
      ConfigError: `kubeflow.endpoint` does not respond, is not the API, or denies access.
      SubmitError: the server refused the run, or it is unknown whether the server accepted it.
    """
    settings = config.kubeflow
    endpoint = (settings.endpoint or "").rstrip("/")
    with _silent_kfp(), _readable_errors(config):
        client, experiment_id = connect(config)
    try:
        with (
            _silent_kfp(),
            _readable_errors(config),
            file_to_send(config, package, values) as file,
        ):
            run = client.run_pipeline(
                experiment_id,
                name,
                pipeline_package_path=str(file),
                params=values,
                pipeline_root=_pipeline_root(config),
                # True would also enable the cache for tasks whose cache the file disables.
                enable_caching=None if config.cache else False,
                service_account=settings.service_account,
            )
    except NoResponse as error:
        raise possibly_submitted(error, name, f"{_ui(endpoint)}/#/runs") from None
    return KubeflowRun(
        client,
        run.run_id,
        name,
        f"{_ui(endpoint)}/#/runs/details/{run.run_id}",
        settings.namespace,
    )


def create_schedule(
    config: PipelineConfig, package: Package, values: dict[str, Any], name: str, cron: str
) -> None:
    """Create a recurring run; see `platforms.schedules.create`.

    Each run reads the input files, without the cache: they may change between the runs.
    """
    settings = config.kubeflow
    with _silent_kfp(), _readable_errors(config):
        client, experiment_id = connect(config)
    try:
        with _silent_kfp(), _readable_errors(config):
            client.create_recurring_run(
                experiment_id,
                name,
                # Kubeflow has six fields: the additional first field is the second of the minute.
                cron_expression=f"0 {cron}",
                # A run that is late is not repeated for each time that it missed.
                no_catchup=True,
                max_concurrency=1,
                params=values,
                pipeline_package_path=str(package.file),
                pipeline_root=_pipeline_root(config),
                enable_caching=None if config.cache else False,
                service_account=settings.service_account,
            )
    except NoResponse as error:
        raise possibly_submitted(error, name, settings.endpoint or "") from None


def find_schedules(config: PipelineConfig) -> list[Schedule]:
    """Return the recurring runs of the experiment."""
    with _silent_kfp(), _readable_errors(config):
        client, experiment_id = connect(config)
        return [
            _schedule(each)
            for each in _pages(client.list_recurring_runs, "recurring_runs", experiment_id)
        ]


def delete_schedules(config: PipelineConfig, name: str, ids: list[str]) -> None:
    """Disable recurring runs, and delete them if none of their runs is in progress.

    Kubeflow deletes the Workflow of a run together with its recurring run, and the API would then
    show the run as running for ever.

    Raises:
      SubmitError: a run is in progress.
    """
    with _silent_kfp(), _readable_errors(config):
        client, experiment_id = connect(config)
        for each in ids:
            client.disable_recurring_run(each)
        for run in _pages(client.list_runs, "runs", experiment_id):
            if run.recurring_run_id in ids and run.state not in ENDS:
                raise SubmitError(
                    f"{name} is disabled, but not deleted, because that would end its run "
                    f"{run.display_name} ({run.run_id}); repeat the command after the end of the "
                    "run, or terminate the run first"
                )
        for each in ids:
            client.delete_recurring_run(each)


def _pages(request: Callable[..., Any], key: str, experiment_id: str) -> Iterator[Any]:
    """Yield what a request for pages returns for the experiment, under `key`."""
    page = ""
    while True:
        answer = request(page, _PAGE, experiment_id=experiment_id)
        yield from getattr(answer, key) or []
        page = answer.next_page_token
        if not page:
            return


def _schedule(run: Any) -> Schedule:
    cron = run.trigger.cron_schedule.cron if run.trigger and run.trigger.cron_schedule else ""
    return Schedule(
        id=run.recurring_run_id,
        name=run.display_name,
        cron=cron.removeprefix("0 "),
        state=(run.status or "").lower(),
    )


def _ui(endpoint: str) -> str:
    return os.environ.get(UI_VARIABLE, endpoint).rstrip("/")


class _Health(NamedTuple):
    multi_user: bool


class _Rest(RESTClientObject):
    """A REST client with a timeout, because kfp's requests have none."""

    def request(self, *args: Any, _request_timeout: Any = None, **kwargs: Any) -> Any:
        return super().request(
            *args, _request_timeout=_request_timeout or CONNECT_AND_READ_SECONDS, **kwargs
        )


class _Client(kfp.Client):
    """kfp's client with a quick check of the server's health.

    The constructor of `kfp.Client` checks the health. Without a server the check of kfp takes half
    a minute and prints five tracebacks.
    """

    def get_kfp_healthz(self, sleep_duration: int = 5) -> _Health:
        """Request the server's health, with retries for a few seconds.

        Raises:
          ApiException: the response is an error, or not one of the API.
        """
        api = self._healthz_api.api_client
        if not isinstance(api.rest_client, _Rest):
            # Only a request that was not sent is retried. The server may have received any other
            # request, and a POST must not be repeated.
            api.configuration.retries = urllib3.Retry(
                None, connect=1, read=0, other=0, redirect=5, respect_retry_after_header=False
            )
            api.rest_client = _Rest(api.configuration)
        for pause in (*PAUSES, None):
            try:
                health = self._get("/apis/v2beta1/healthz", _request_timeout=HEALTH_SECONDS)
                break
            except ApiException as error:
                if pause is None or not error.status or error.status < 500:
                    raise
                time.sleep(pause)
        if not isinstance(health, dict):
            raise ApiException(status=404, reason="a web page, perhaps a login page")
        if health.get("apiServerReady") is False:
            raise ApiException(
                status=503, reason="the UI responds, but its API server is not ready"
            )
        return _Health(bool(health.get("multi_user")))

    def is_cancelled(self, run: Any) -> bool:
        """Return whether a run whose state is FAILED was cancelled.

        Kubeflow cancels a run by the deadline 0 of its Workflow, which only an older version of the
        API returns. The history of the states has CANCELING only if it lasted for some seconds.
        """
        if any(each.state == "CANCELING" for each in run.state_history or []):
            return True
        try:
            answer = self._get(f"/apis/v1beta1/runs/{run.run_id}")
        except ApiException as error:
            if error.status == 404:
                return False
            raise
        workflow = json.loads(answer.get("pipeline_runtime", {}).get("workflow_manifest", "{}"))
        return workflow.get("spec", {}).get("activeDeadlineSeconds") == 0

    def _get(self, path: str, **options: Any) -> Any:
        return self._healthz_api.api_client.call_api(
            path,
            "GET",
            header_params={"Accept": "application/json"},
            response_type="object",
            auth_settings=["Bearer"],
            _return_http_data_only=True,
            **options,
        )


def connect(config: PipelineConfig) -> tuple[kfp.Client, str]:
    """Return the client, and the id of the experiment of the pipeline, which is created if missing.

    A single-user server refuses requests with a namespace.
    """
    settings = config.kubeflow
    client = _Client(host=(settings.endpoint or "").rstrip("/"), credentials=_credentials())
    namespace = settings.namespace if client.get_kfp_healthz().multi_user else None
    experiment = client.create_experiment(cluster_name(config), namespace=namespace)
    return client, experiment.experiment_id


def _pipeline_root(config: PipelineConfig) -> str | None:
    """Return the root of the pipeline's artifacts; None: the server's default."""
    return config.paths.root if "://" in config.paths.root else None


def _credentials() -> Any:
    """Return the token in the file $KF_PIPELINES_SA_TOKEN_PATH, or that of the pod; None: none."""
    named = os.environ.get(TOKEN_VARIABLE)
    if named and not Path(named).is_file():
        raise ConfigError(
            f"{TOKEN_VARIABLE}: no file {named!r}; set the path of a file with a token"
        )
    if named or Path(kfp_client.KF_PIPELINES_SA_TOKEN_PATH).is_file():
        return set_volume_credentials.ServiceAccountTokenVolumeCredentials()
    return None


@contextlib.contextmanager
def _silent_kfp() -> Iterator[None]:
    """Discard the links that kfp prints, and warnings about older servers and about retries."""
    logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _readable_errors(config: PipelineConfig) -> Iterator[None]:
    """Convert the exceptions of kfp to errors of one line that name the setting to check."""
    settings = config.kubeflow
    at = f"kubeflow.endpoint: {settings.endpoint}"
    try:
        yield
    except urllib3.exceptions.HTTPError as error:
        problem = no_response(error)
        if problem.sent:
            raise NoResponse(f"{at}: {problem}") from None
        raise ConfigError(
            f"{at} is unreachable ({problem}). Check that Kubeflow Pipelines runs there; from "
            f"outside the cluster run `{PORT_FORWARD}`"
        ) from None
    except ApiException as error:
        text, status = _server_message(error), error.status
        # Servers before 2.0 respond with 500 to a request without credentials.
        if status == 401 or "Unauthenticated" in text:
            raise ConfigError(
                f"{at} requires authentication ({text}). Set {TOKEN_VARIABLE} to a file with a "
                f"token from `kubectl create token default-editor -n {settings.namespace} "
                "--audience pipelines.kubeflow.org`"
            ) from None
        if status == 403:
            raise ConfigError(
                f"kubeflow.namespace: no permission to run pipelines in {settings.namespace!r} "
                f"({text})"
            ) from None
        if status == 404:
            raise ConfigError(
                f"{at} is not the Kubeflow Pipelines API, or requires a login ({text}). After "
                f"`{PORT_FORWARD}` the endpoint is http://127.0.0.1:8080; on a Kubeflow platform "
                "it ends in /pipeline"
            ) from None
        if status and status < 500 and status != 429:
            raise SubmitError(f"Kubeflow Pipelines refused the run: {text}") from None
        raise NoResponse(f"{at}: {text}") from None


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
