"""Runs and schedules on Vertex AI Pipelines, by the generated clients of its REST API.

`google.cloud.aiplatform` itself is not used: its import takes 15 s, it creates missing buckets, and
it reports expired credentials as a server that does not respond. The import of its generated
clients, `aiplatform_v1`, takes 1.5 s.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import requests
from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.services.pipeline_service import PipelineServiceClient
from google.cloud.aiplatform_v1.services.schedule_service import ScheduleServiceClient

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms.follow import (
    NoResponse,
    Status,
    SubmitError,
    Task,
    no_response,
    one_line,
    possibly_submitted,
)
from platforms.google_cloud.api import REQUEST_SECONDS
from platforms.google_cloud.credentials import LOGIN, find_credentials
from platforms.schedules import Schedule
from platforms.submission import Package

RETRY_SECONDS = 30.0
"""Seconds for which a submission is repeated. The request contains the id of the run, so a repeated
request creates no second run."""
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_TRANSIENT = (
    exceptions.ServerError,
    exceptions.TooManyRequests,
    requests.exceptions.RequestException,
    TransportError,
)
_ERRORS = (
    exceptions.GoogleAPICallError,
    exceptions.RetryError,
    requests.exceptions.RequestException,
    GoogleAuthError,
)


def connect(config: PipelineConfig, service: Any = PipelineServiceClient) -> Any:
    """Return a client of `vertex.region` with this machine's credentials, without a request.

    Raises:
      ConfigError: there are no credentials.
    """
    return service(
        credentials=find_credentials("vertex.project", config.vertex.project or "", [SCOPE]),
        transport="rest",
        client_options={"api_endpoint": f"{config.vertex.region}-aiplatform.googleapis.com"},
    )


@dataclass(frozen=True)
class VertexRun:
    """A run on Vertex AI Pipelines; see `platforms.follow.Run`."""

    config: PipelineConfig
    client: PipelineServiceClient
    name: str

    @property
    def link(self) -> str:
        """See `platforms.follow.Run`."""
        vertex = self.config.vertex
        return (
            f"https://console.cloud.google.com/vertex-ai/locations/{vertex.region}/pipelines/runs/"
            f"{self.name}?project={vertex.project}"
        )

    @property
    def logs(self) -> str:
        """See `platforms.follow.Run`."""
        return self.link

    def last_errors(self) -> list[str]:
        """See `platforms.follow.Run`."""
        return []

    def status(self) -> Status:
        """See `platforms.follow.Run`."""
        resource = f"{_parent(self.config)}/pipelineJobs/{self.name}"
        try:
            job = self.client.get_pipeline_job(name=resource, retry=None, timeout=REQUEST_SECONDS)
        except _ERRORS as error:
            problem = _readable(error, self.config)
            if isinstance(problem, NoResponse):
                raise problem from None
            raise SubmitError(str(problem)) from None
        state = types.PipelineState(job.state).name.removeprefix("PIPELINE_STATE_")
        details = job.job_detail.task_details
        return Status(state, tuple(_task(detail) for detail in details), job.error.message)


def start(config: PipelineConfig, package: Package, values: dict[str, Any], name: str) -> VertexRun:
    """Submit the pipeline as a run with the id `name`; return when Vertex AI has accepted it.

    Raises:
      ConfigError: missing or expired credentials, no permission, or a wrong project or region.
      SubmitError: Vertex AI refused the run or does not respond.
    """
    run = VertexRun(config, connect(config), name)
    request = {
        "parent": _parent(config),
        "pipeline_job": _pipeline_job(config, package, values, name),
        "pipeline_job_id": name,
    }
    attempts: list[Exception] = []
    retry = Retry(
        if_exception_type(*_TRANSIENT),
        maximum=8.0,
        timeout=RETRY_SECONDS,
        on_error=attempts.append,
    )
    with readable_errors(config, name, run.link, attempts):
        try:
            run.client.create_pipeline_job(request=request, retry=retry, timeout=REQUEST_SECONDS)
        except exceptions.Conflict:
            # No other run has this id: an earlier attempt succeeded, and its response was lost.
            if not attempts:
                raise
    return run


def create_schedule(
    config: PipelineConfig, package: Package, values: dict[str, Any], name: str, cron: str
) -> None:
    """Create a schedule; see `platforms.schedules.create`."""
    parent = _parent(config)
    schedule = types.Schedule(
        display_name=name,
        cron=cron,
        max_concurrent_run_count=1,
        # A run that is late starts when the one before has ended.
        allow_queueing=True,
        create_pipeline_job_request={
            "parent": parent,
            "pipeline_job": _pipeline_job(config, package, values, name),
        },
    )
    page = (
        "https://console.cloud.google.com/vertex-ai/pipelines/schedules"
        f"?project={config.vertex.project}"
    )
    with readable_errors(config, name, page):
        # A second attempt would create a second schedule, so there is none.
        connect(config, ScheduleServiceClient).create_schedule(
            parent=parent, schedule=schedule, retry=None, timeout=REQUEST_SECONDS
        )


def find_schedules(config: PipelineConfig) -> list[Schedule]:
    """Return the schedules of the project and region."""
    with readable_errors(config):
        found = connect(config, ScheduleServiceClient).list_schedules(
            parent=_parent(config), retry=None, timeout=REQUEST_SECONDS
        )
        return [
            Schedule(
                id=each.name,
                name=each.display_name,
                cron=each.cron,
                state=types.Schedule.State(each.state).name.lower(),
            )
            for each in found
        ]


def delete_schedules(config: PipelineConfig, name: str, ids: list[str]) -> None:
    """Delete schedules. Their runs in progress continue."""
    client = connect(config, ScheduleServiceClient)
    with readable_errors(config):
        for each in ids:
            client.delete_schedule(name=each, retry=None, timeout=REQUEST_SECONDS)


@contextlib.contextmanager
def readable_errors(
    config: PipelineConfig, name: str = "", link: str = "", attempts: Sequence[Exception] = ()
) -> Iterator[None]:
    """Convert the exceptions of a request to errors of one line that name the setting to check.

    Args:
      config: the settings of the submission.
      name, link: the name of what the request creates, if it does, and the page that shows it.
      attempts: the errors of the attempts of the same request.

    Raises:
      ConfigError: a setting or the credentials are wrong.
      NoResponse: the request failed, and a retry may succeed.
      SubmitError: the request failed, and a retry does not help.
    """
    try:
        yield
    except _ERRORS as error:
        # A RetryError has only the timeout in its message, and the last error as its cause.
        cause = getattr(error, "cause", None) or error
        problem = _readable(cause, config)
        if not isinstance(problem, NoResponse):
            raise problem from None
        problems = [problem, *(_readable(each, config) for each in attempts)]
        if any(isinstance(each, NoResponse) and each.sent for each in problems):
            raise (possibly_submitted(problem, name, link) if name else problem) from None
        if isinstance(cause, TransportError):
            raise problem from None
        raise ConfigError(
            f"vertex.region: {problem}. Check that {config.vertex.region} is a region of Vertex "
            "AI, such as us-central1, and that this machine has access to the Internet"
        ) from None


def _parent(config: PipelineConfig) -> str:
    return f"projects/{config.vertex.project}/locations/{config.vertex.region}"


def _pipeline_job(
    config: PipelineConfig, package: Package, values: dict[str, Any], name: str
) -> types.PipelineJob:
    vertex = config.vertex
    job = types.PipelineJob.from_json(json.dumps(package.job))
    job.display_name = name
    job.runtime_config.gcs_output_directory = config.paths.root
    job.runtime_config.parameter_values.update(values)
    job.service_account = vertex.service_account or ""
    job.network = vertex.network or ""
    if not config.cache:
        for task in job.pipeline_spec["root"]["dag"]["tasks"].values():
            task["cachingOptions"] = {"enableCache": False}
    return job


def _readable(error: Exception, config: PipelineConfig) -> Exception:
    """Return an error of one line; see `readable_errors`."""
    vertex, message = config.vertex, _message(error)
    if isinstance(error, TransportError):
        return NoResponse(f"the credentials cannot be refreshed: {message}", sent=False)
    if isinstance(error, GoogleAuthError):
        return ConfigError(
            f"vertex.project: the Google Cloud credentials are not valid ({message}); run {LOGIN}"
        )
    if isinstance(error, requests.exceptions.RequestException):
        return no_response(error.args[0] if error.args else error)
    if isinstance(error, _TRANSIENT):
        return NoResponse(message)
    if isinstance(error, exceptions.Unauthorized | exceptions.Forbidden):
        return ConfigError(
            f"vertex.project: no permission in {vertex.project} ({message}). A submission requires "
            "roles/aiplatform.user there, and roles/iam.serviceAccountUser on the account in "
            "vertex.service_account"
        )
    if isinstance(error, exceptions.NotFound):
        return ConfigError(
            f"vertex.region: {vertex.region} in {vertex.project} is not found ({message}). Check "
            "that it is a region of Vertex AI, such as us-central1"
        )
    return SubmitError(f"Vertex AI refused the run: {message}")


def _message(error: Any) -> str:
    """Return the message of the API, which the client puts behind the request's method and URL."""
    text = re.sub(r"^[A-Z]+ https?://\S+: ", "", str(getattr(error, "message", error)))
    return one_line("no response of the API" if text.lstrip().startswith("<") else text)


def _task(detail: Any) -> Task:
    executor = detail.executor_detail
    job = executor.container_detail.main_job or executor.custom_job_detail.job
    error = detail.error.message
    if error and job:
        error = f"{one_line(error, 300)} (log: gcloud ai custom-jobs stream-logs {job})"
    return Task(detail.task_name, types.PipelineTaskDetail.State(detail.state).name, error)
