"""Runs on Vertex AI Pipelines, by the generated client of its API.

`google.cloud.aiplatform` itself is not used, because its import takes 15 s, and it creates missing
buckets. The import of the generated clients, `aiplatform_v1`, takes 1.5 s.
"""

from __future__ import annotations

import contextlib
import json
from functools import partial
from pathlib import Path
from typing import Any

from google.api_core import exceptions
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import Request
from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.services.pipeline_service import PipelineServiceClient

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms.follow import NoResponse, Run, Status, Task, possibly_submitted
from platforms.google_credentials import find_credentials, login_remedy
from platforms.input_cache import set_cache
from platforms.pipeline_spec import CompiledPipeline, tasks_of
from platforms.vertex import api as vertex_api
from platforms.vertex.api import (
    REQUEST_SECONDS,
    TRANSIENT,
    errors_in_one_line,
)

RETRY_SECONDS = 30.0
"""Timeout of a submission with all retries. The request contains the id of the run, so a retry
creates no second run."""
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""The OAuth scope of a submission."""


def check_access(config: PipelineConfig) -> None:
    """Check that this machine's credentials can be refreshed.

    The clients report expired credentials as a service that does not respond.

    Raises:
      ConfigError: there are no credentials, they cannot be refreshed, or the server that
        refreshes them is not reachable.
    """
    credentials = find_credentials("vertex.project", config.vertex.project or "", [SCOPE])
    try:
        credentials.refresh(Request())
    except TransportError as error:
        raise ConfigError(
            f"vertex.project: the server of the Google Cloud credentials is not reachable ({error})"
            "; check the network and the proxy of this machine"
        ) from None
    except GoogleAuthError as error:
        raise ConfigError(
            f"vertex.project: the Google Cloud credentials are not valid ({error}); "
            f"{login_remedy()}"
        ) from None


def start(config: PipelineConfig, package: Path, values: dict[str, Any], name: str) -> Run:
    """Submit a compiled pipeline; return when Vertex AI has accepted the run.

    Args:
      config: the settings of the pipeline.
      package: the file of the compiled pipeline.
      values: parameter of the run -> value.
      name: the name and id of the run, of at most 128 characters.

    Raises:
      InputError: there are no credentials, or Vertex AI refuses the run.
      ServerError: Vertex AI did not respond. The run was perhaps submitted.
      Interrupted: Ctrl-C before the response. The run was perhaps submitted.
    """  # noqa: DOC501
    vertex = config.vertex
    parent = vertex_api.location(vertex.project, vertex.region)
    link = (
        f"https://console.cloud.google.com/vertex-ai/locations/{vertex.region}/pipelines/runs/"
        f"{name}?project={vertex.project}"
    )
    client = vertex_api.connect(PipelineServiceClient, vertex.region or "")
    pipeline = read_pipeline(package)
    set_cache(config, pipeline.tasks, values)
    job = pipeline_job(config, pipeline, values, name)
    retry = Retry(if_exception_type(*TRANSIENT), maximum=8.0, timeout=RETRY_SECONDS)
    request = {"parent": parent, "pipeline_job": job, "pipeline_job_id": name}
    try:
        # No other run has this id. If it exists already, the response to an earlier attempt was
        # lost.
        with errors_in_one_line("submit the run"), contextlib.suppress(exceptions.AlreadyExists):
            client.create_pipeline_job(request=request, retry=retry, timeout=REQUEST_SECONDS)
    except (NoResponse, KeyboardInterrupt) as error:
        raise possibly_submitted(error, name, link) from None
    resource = f"{parent}/pipelineJobs/{name}"
    return Run(name, list(pipeline.tasks), link, link, partial(_status, client, resource))


def _status(client: PipelineServiceClient, resource: str) -> Status:
    with errors_in_one_line("read the run"):
        job = client.get_pipeline_job(name=resource, retry=None, timeout=REQUEST_SECONDS)
    state = types.PipelineState(job.state).name.removeprefix("PIPELINE_STATE_")
    return Status(state, list(map(_task, job.job_detail.task_details)), job.error.message)


def read_pipeline(package: Path) -> CompiledPipeline:
    """Return a compiled pipeline, whose document is a PipelineJob.

    Args:
      package: the file of the compiled pipeline.
    """
    document: dict[str, Any] = json.loads(package.read_text(encoding="utf-8"))
    return CompiledPipeline(document, tasks_of(document["pipelineSpec"]))


def pipeline_job(
    config: PipelineConfig, pipeline: CompiledPipeline, values: dict[str, Any], name: str
) -> types.PipelineJob:
    """Return the message of a run.

    Args:
      config: the settings of the pipeline.
      pipeline: the compiled pipeline.
      values: parameter of the run -> value.
      name: the name of the run.
    """
    vertex = config.vertex
    job = types.PipelineJob.from_json(json.dumps(pipeline.document))
    job.display_name = name
    job.runtime_config.gcs_output_directory = config.paths.root
    job.runtime_config.parameter_values.update(values)
    job.service_account = vertex.service_account or ""
    job.network = vertex.network or ""
    return job


def _task(detail: Any) -> Task:
    executor = detail.executor_detail
    job = executor.container_detail.main_job or executor.custom_job_detail.job
    error = detail.error.message
    if error and job:
        error = f"{error[:300]} (log: gcloud ai custom-jobs stream-logs {job})"
    return Task(detail.task_name, types.PipelineTaskDetail.State(detail.state).name, error)
