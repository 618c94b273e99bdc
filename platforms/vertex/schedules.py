"""Schedules of Vertex AI Pipelines, by the generated client of its API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.services.schedule_service import ScheduleServiceClient

from pipeline.config import PipelineConfig
from platforms.follow import NoResponse, possibly_submitted
from platforms.google_cloud import api as vertex_api
from platforms.google_cloud.api import REQUEST_SECONDS, errors_in_one_line, retrying
from platforms.input_cache import disable_cache
from platforms.vertex.client import location, pipeline_job, read_document


def find(config: PipelineConfig, name: str) -> list[str]:
    """Return the resource names of the schedules of a pipeline that have not ended.

    Args:
      config: the settings of the pipeline.
      name: the name of the schedules.

    Raises:
      InputError: there are no credentials, or Vertex AI refuses the request.
      ServerError: Vertex AI did not respond.
    """
    request = {"parent": location(config), "filter": f'display_name="{name}"'}
    with errors_in_one_line("list the schedules"):
        listed = _client(config).list_schedules(request=request, **retrying())
        return [each.name for each in listed if each.state != types.Schedule.State.COMPLETED]


def create(
    config: PipelineConfig, package: Path, values: dict[str, Any], name: str, cron: str
) -> str:
    """Create a schedule, whose runs do not overlap; return the URL of its page.

    Args:
      config: the settings of the pipeline.
      package: the file of the compiled pipeline.
      values: parameter of each run -> value.
      name: the name of the schedule.
      cron: a cron expression with five fields.

    Raises:
      InputError: there are no credentials, or Vertex AI refuses the schedule.
      ServerError: Vertex AI did not respond. The schedule was perhaps created.
    """  # noqa: DOC501
    document = read_document(package)
    if not config.cache:
        disable_cache(document["pipelineSpec"]["root"]["dag"]["tasks"])
    parent, vertex = location(config), config.vertex
    schedule = types.Schedule(
        display_name=name,
        cron=f"TZ=UTC {cron}",
        max_concurrent_run_count=1,
        allow_queueing=True,
        create_pipeline_job_request={
            "parent": parent,
            "pipeline_job": pipeline_job(config, document, values, name),
        },
    )
    pages = (
        f"https://console.cloud.google.com/vertex-ai/pipelines/schedules?project={vertex.project}"
    )
    request = {"parent": parent, "schedule": schedule}
    try:
        with errors_in_one_line("create the schedule"):
            # A retry after a lost response would create a second schedule.
            _client(config).create_schedule(request=request, retry=None, timeout=REQUEST_SECONDS)
    except NoResponse as error:
        raise possibly_submitted(error, name, pages) from None
    return pages


def remove(config: PipelineConfig, schedule: str) -> None:
    """Remove a schedule.

    Args:
      config: the settings of the pipeline.
      schedule: a resource name of `find`.

    Raises:
      InputError: there are no credentials, or Vertex AI refuses the request.
      ServerError: Vertex AI did not respond.
    """
    with errors_in_one_line("remove the schedule"):
        operation = _client(config).delete_schedule(name=schedule, timeout=REQUEST_SECONDS)
        operation.result(timeout=REQUEST_SECONDS)


def _client(config: PipelineConfig) -> ScheduleServiceClient:
    return vertex_api.connect(ScheduleServiceClient, config.vertex.region or "")
