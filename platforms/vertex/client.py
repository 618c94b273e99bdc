"""Submission of one run to Vertex AI Pipelines by its REST API, with the compiled file as content.

`google.cloud.aiplatform` is not used: its import takes 15 s, it creates missing buckets, and it
reports expired credentials as a server that does not respond.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import requests
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession

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
from platforms.google_cloud.credentials import LOGIN, find_credentials
from platforms.package import Package

CONNECT_AND_READ_SECONDS = (10.0, 60.0)
PAUSES = (1.0, 2.0, 4.0)
"""Seconds between the retries of a request. The request contains the id of the run, so a repeated
request creates no second run."""

SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class Api(NamedTuple):
    """The REST API of a region.

    Attributes:
      url: the URL up to the version, inclusive.
      session: a requests.Session that adds the credentials.
    """

    url: str
    session: requests.Session


def connect(config: PipelineConfig) -> Api:
    """Return the API of `vertex.region` with this machine's credentials, without a request.

    Raises:
      ConfigError: there are no credentials.
    """
    credentials = find_credentials("vertex.project", config.vertex.project or "", [SCOPE])
    url = f"https://{config.vertex.region}-aiplatform.googleapis.com/v1"
    return Api(url, AuthorizedSession(credentials))


@dataclass(frozen=True)
class VertexRun:
    """A run on Vertex AI Pipelines; see `platforms.follow.Run`."""

    api: Api
    resource: str
    """`projects/PROJECT/locations/REGION/pipelineJobs/NAME`"""
    name: str
    link: str

    @property
    def logs(self) -> str:
        """See `platforms.follow.Run`."""
        return self.link

    def last_errors(self) -> list[str]:
        """See `platforms.follow.Run`."""
        return []

    def status(self) -> Status:
        """See `platforms.follow.Run`."""
        try:
            job = request(self.api, "GET", self.resource)
        except Refused as error:
            raise SubmitError(str(error)) from None
        except TransportError as error:
            raise NoResponse(f"the credentials cannot be refreshed: {error}") from None
        except GoogleAuthError as error:
            raise SubmitError(f"the credentials are no longer valid: {error}") from None
        details = job.get("jobDetail", {}).get("taskDetails", [])
        state = job.get("state", "").removeprefix("PIPELINE_STATE_")
        return Status(state, tuple(_task(detail) for detail in details), _message(job))


def start(config: PipelineConfig, package: Package, values: dict[str, Any], name: str) -> VertexRun:
    """Submit the pipeline as a run with the id `name`; return when Vertex AI has accepted it.

    Raises:
      ConfigError: missing or expired credentials, no permission, or a wrong project or region.
      SubmitError: Vertex AI refused the run or does not respond.
    """
    project, region = config.vertex.project, config.vertex.region
    parent = parent_of(config)
    link = (
        f"https://console.cloud.google.com/vertex-ai/locations/{region}/pipelines/runs/{name}"
        f"?project={project}"
    )
    api = connect(config)
    with readable_errors(config, name, link):
        _create(api, parent, name, pipeline_job(config, package, values, name))
    return VertexRun(api, f"{parent}/pipelineJobs/{name}", name, link)


def parent_of(config: PipelineConfig) -> str:
    """Return the resource that contains the runs and schedules of a region."""
    return f"projects/{config.vertex.project}/locations/{config.vertex.region}"


@contextlib.contextmanager
def readable_errors(config: PipelineConfig, name: str = "", link: str = "") -> Iterator[None]:
    """Convert the exceptions of a request to errors of one line that name the setting to check.

    Args:
      config: the settings of the submission.
      name, link: the name of what the request creates, if it does, and the page that shows it.
    """
    try:
        yield
    except Refused as error:
        raise readable_error(error, config) from None
    except NoResponse as error:
        if error.sent and not name:
            raise
        if error.sent:
            raise possibly_submitted(error, name, link) from None
        raise ConfigError(
            f"vertex.region: {error}. Check that {config.vertex.region} is a region of Vertex AI, "
            "such as us-central1, and that this machine has access to the Internet"
        ) from None
    except TransportError as error:
        raise SubmitError(f"the credentials cannot be refreshed: {error}") from None
    except GoogleAuthError as error:
        raise ConfigError(
            f"vertex.project: the Google Cloud credentials are not valid ({one_line(str(error))}); "
            f"run {LOGIN}"
        ) from None


def pipeline_job(
    config: PipelineConfig, package: Package, values: dict[str, Any], name: str
) -> dict[str, Any]:
    runtime = package.job.get("runtimeConfig", {})
    job = {
        **package.job,
        "displayName": name,
        "runtimeConfig": {
            **runtime,
            "gcsOutputDirectory": config.paths.root,
            "parameterValues": {**runtime.get("parameterValues", {}), **values},
        },
    }
    if config.vertex.service_account:
        job["serviceAccount"] = config.vertex.service_account
    if config.vertex.network:
        job["network"] = config.vertex.network
    if not config.cache:
        for task in package.spec["root"]["dag"]["tasks"].values():
            task["cachingOptions"] = {"enableCache": False}
    return job


def _create(api: Api, parent: str, name: str, job: dict[str, Any]) -> None:
    sent = False
    for attempt, pause in enumerate((*PAUSES, None)):
        try:
            request(api, "POST", f"{parent}/pipelineJobs", {"pipelineJobId": name}, job)
            return
        except NoResponse as error:
            sent = sent or error.sent
            if pause is None:
                raise NoResponse(str(error), sent) from None
            time.sleep(pause)
        except Refused as error:
            # No other run has this id, so an earlier attempt succeeded and its response was lost.
            if attempt and error.status == 409:
                return
            raise


class Refused(Exception):
    """A request whose error a retry does not change."""

    def __init__(self, status: int, message: str):
        super().__init__(one_line(message))
        self.status = status


def request(
    api: Api,
    method: str,
    path: str,
    query: dict[str, str] | None = None,
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Send a request and return the JSON of the response.

    Raises:
      Refused: the request failed, and a retry does not help.
      NoResponse: the request failed, and a retry may succeed.
      GoogleAuthError: the credentials are not valid.
    """
    try:
        response = api.session.request(
            method,
            f"{api.url}/{path}",
            params=query,
            json=body,
            timeout=CONNECT_AND_READ_SECONDS,
        )
    except requests.exceptions.RequestException as error:
        problem = no_response(error.args[0] if error.args else error)
        raise NoResponse(f"{api.url}: {problem}", problem.sent) from None
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if response.ok and isinstance(answer, dict):
        return answer
    message = _message(answer) if isinstance(answer, dict) else ""
    text = message or f"{response.status_code} {response.reason}, not a response of the API"
    if response.status_code == 429 or response.status_code >= 500:
        raise NoResponse(text)
    raise Refused(response.status_code, text)


def readable_error(error: Refused, config: PipelineConfig) -> Exception:
    """Return an error of one line that names the setting to check."""
    vertex = config.vertex
    if error.status == 401:
        return ConfigError(
            f"vertex.project: Vertex AI rejected the credentials ({error}); run {LOGIN}"
        )
    if error.status == 403 and "has not been used" in str(error):
        return ConfigError(
            f"vertex.project: the Vertex AI API is disabled in {vertex.project}; enable it with "
            f"`gcloud services enable aiplatform.googleapis.com --project {vertex.project}`"
        )
    if error.status in (400, 403) and ("act as" in str(error) or "actAs" in str(error)):
        return ConfigError(
            f"vertex.service_account: {error}; a submission requires "
            "roles/iam.serviceAccountUser on "
            f"{vertex.service_account or 'the default account of Compute Engine'}"
        )
    if error.status == 403:
        return ConfigError(
            f"vertex.project: no permission in {vertex.project} ({error}); a submission requires "
            "roles/aiplatform.user there"
        )
    if error.status == 404:
        return ConfigError(
            f"vertex.region: {vertex.region} in {vertex.project} is not found ({error}). Check "
            "that it is a region of Vertex AI, such as us-central1"
        )
    return SubmitError(f"Vertex AI refused the run: {error}")


def _task(detail: dict[str, Any]) -> Task:
    executor = detail.get("executorDetail", {})
    job = executor.get("containerDetail", {}).get("mainJob") or executor.get(
        "customJobDetail", {}
    ).get("job")
    error = _message(detail)
    if error and job:
        error = f"{one_line(error, 300)} (log: gcloud ai custom-jobs stream-logs {job})"
    return Task(detail.get("taskName", ""), detail.get("state", ""), error)


def _message(answer: dict[str, Any]) -> str:
    return (answer.get("error") or {}).get("message", "")
