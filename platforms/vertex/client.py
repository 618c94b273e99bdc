"""Vertex AI Pipelines: one run through the REST API, which takes a PipelineJob as it was compiled.

Not through `google.cloud.aiplatform`: that takes 15 s to import, makes buckets that are missing,
and takes expired credentials for a server that does not answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import requests
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession

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
from platforms.google_cloud.credentials import LOGIN, find_credentials
from platforms.package import Package

CONNECT_AND_READ_SECONDS = (10.0, 60.0)
PAUSES = (1.0, 2.0, 4.0)
"""Seconds between the tries of a request. A run has an id of ours, so the same request sent twice
makes one run."""

SCOPE = "https://www.googleapis.com/auth/cloud-platform"


class Api(NamedTuple):
    """The REST API of a region.

    Attributes:
      url: up to and with its version.
      session: a requests.Session that adds the credentials.
    """

    url: str
    session: requests.Session


def connect(config: PipelineConfig) -> Api:
    """The API of `vertex.region`, with the credentials of this machine; asks nobody yet.

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

    def status(self) -> Status:
        """See `platforms.follow.Run`."""
        try:
            job = _request(self.api, "GET", self.resource)
        except _Refused as error:
            raise SubmitError(str(error)) from None
        except TransportError as error:
            raise NoAnswer(f"the credentials cannot be refreshed: {error}") from None
        except GoogleAuthError as error:
            raise SubmitError(f"the credentials no longer work: {error}") from None
        details = job.get("jobDetail", {}).get("taskDetails", [])
        state = job.get("state", "").removeprefix("PIPELINE_STATE_")
        return Status(state, tuple(_task(detail) for detail in details), _message(job))


def start(config: PipelineConfig, package: Package, values: dict[str, Any], name: str) -> VertexRun:
    """Submits the pipeline as a run with the id `name`; returns as soon as Vertex AI has taken it.

    Raises:
      ConfigError: no or expired credentials, no permission, or a project or region that is none.
      SubmitError: Vertex AI refused the run or does not answer.
    """
    project, region = config.vertex.project, config.vertex.region
    parent = f"projects/{project}/locations/{region}"
    link = (
        f"https://console.cloud.google.com/vertex-ai/locations/{region}/pipelines/runs/{name}"
        f"?project={project}"
    )
    api = connect(config)
    try:
        _create(api, parent, name, _job(config, package, values, name))
    except _Refused as error:
        raise _told(error, config) from None
    except NoAnswer as error:
        if error.sent:
            raise unknown_whether(error, name, link) from None
        raise ConfigError(
            f"vertex.region: {error}; is {region} a region with Vertex AI, us-central1 for "
            "example, and this machine on the Internet?"
        ) from None
    except TransportError as error:
        raise SubmitError(f"the credentials cannot be refreshed: {error}") from None
    except GoogleAuthError as error:
        raise ConfigError(
            f"vertex.project: the Google Cloud credentials do not work ({one_line(str(error))}); "
            f"run {LOGIN}"
        ) from None
    return VertexRun(api, f"{parent}/pipelineJobs/{name}", name, link)


def _job(
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
            _request(api, "POST", f"{parent}/pipelineJobs", {"pipelineJobId": name}, job)
            return
        except NoAnswer as error:
            sent = sent or error.sent
            if pause is None:
                raise NoAnswer(str(error), sent) from None
            time.sleep(pause)
        except _Refused as error:
            # Nobody else has this id: an earlier try got through, its answer did not.
            if attempt and error.status == 409:
                return
            raise


class _Refused(Exception):
    """An answer that asking again will not change."""

    def __init__(self, status: int, message: str):
        super().__init__(one_line(message))
        self.status = status


def _request(
    api: Api,
    method: str,
    path: str,
    query: dict[str, str] | None = None,
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Raises _Refused, NoAnswer where asking again may help, or GoogleAuthError."""
    try:
        response = api.session.request(
            method,
            f"{api.url}/{path}",
            params=query,
            json=body,
            timeout=CONNECT_AND_READ_SECONDS,
        )
    except requests.exceptions.RequestException as error:
        problem = no_connection(error.args[0] if error.args else error)
        raise NoAnswer(f"{api.url}: {problem}", problem.sent) from None
    try:
        answer = response.json()
    except ValueError:
        answer = None
    if response.ok and isinstance(answer, dict):
        return answer
    message = _message(answer) if isinstance(answer, dict) else ""
    text = message or f"{response.status_code} {response.reason}, and no answer of the API"
    if response.status_code == 429 or response.status_code >= 500:
        raise NoAnswer(text)
    raise _Refused(response.status_code, text)


def _told(error: _Refused, config: PipelineConfig) -> Exception:
    """One line that names the setting to look at."""
    vertex = config.vertex
    if error.status == 401:
        return ConfigError(
            f"vertex.project: the credentials are not accepted ({error}); run {LOGIN}"
        )
    if error.status == 403 and "has not been used" in str(error):
        return ConfigError(
            f"vertex.project: the Vertex AI API is off in {vertex.project}; switch it on with "
            f"`gcloud services enable aiplatform.googleapis.com --project {vertex.project}`"
        )
    if error.status in (400, 403) and ("act as" in str(error) or "actAs" in str(error)):
        return ConfigError(
            f"vertex.service_account: {error}; submitting needs roles/iam.serviceAccountUser on "
            f"{vertex.service_account or 'the default account of Compute Engine'}"
        )
    if error.status == 403:
        return ConfigError(
            f"vertex.project: not allowed in {vertex.project} ({error}); submitting needs "
            "roles/aiplatform.user there"
        )
    if error.status == 404:
        return ConfigError(
            f"vertex.region: {vertex.region} in {vertex.project} is not found ({error}); "
            "is it a region with Vertex AI, us-central1 for example?"
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
