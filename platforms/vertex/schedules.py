"""Schedules of Vertex AI Pipelines, by the generated client of its API."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.services.schedule_service import ScheduleServiceClient

from pipeline.config import PipelineConfig
from platforms.clusters import ScheduleTime
from platforms.follow import NoResponse, possibly_submitted
from platforms.input_cache import disable_cache
from platforms.vertex import api as vertex_api
from platforms.vertex.api import REQUEST_SECONDS, errors_in_one_line, retrying
from platforms.vertex.client import pipeline_job, read_pipeline


class Schedules:
    """The schedules of a pipeline, see `platforms.clusters.Schedules`.

    Args:
      config: the settings of the pipeline.

    Raises:
      InputError: there are no credentials.
    """

    replaced = re.compile(r"\{\{\$\.[^{}]+\}\}")
    time = ScheduleTime("{{$.pipeline_job_schedule_time_utc}}", "2026-11-28T03:00:00Z")

    def __init__(self, config: PipelineConfig):
        self._config = config
        self._parent = vertex_api.location(config.vertex.project, config.vertex.region)
        self._client: ScheduleServiceClient = vertex_api.connect(
            ScheduleServiceClient, config.vertex.region or ""
        )

    def find(self, name: str) -> list[str]:
        """Return the resource names of the schedules with a name that have not ended.

        Raises:
          InputError: Vertex AI refuses the request.
          ServerError: Vertex AI did not respond.
        """
        request = {"parent": self._parent, "filter": f'display_name="{name}"'}
        with errors_in_one_line("list the schedules"):
            listed = self._client.list_schedules(request=request, **retrying())
            return [each.name for each in listed if each.state != types.Schedule.State.COMPLETED]

    def create(self, package: Path, values: dict[str, Any], name: str, cron: str) -> str:
        """Create a schedule, whose runs do not overlap; return the URL of its page.

        Args:
          package: the file of the compiled pipeline.
          values: parameter of each run -> value.
          name: the name of the schedule.
          cron: a cron expression with five fields.

        Raises:
          InputError: Vertex AI refuses the schedule.
          ServerError: Vertex AI did not respond. The schedule was perhaps created.
          Interrupted: Ctrl-C before the response. The schedule was perhaps created.
        """  # noqa: DOC501
        pipeline = read_pipeline(package)
        if not self._config.cache:
            disable_cache(pipeline.tasks)
        schedule = types.Schedule(
            display_name=name,
            cron=f"TZ=UTC {cron}",
            max_concurrent_run_count=1,
            allow_queueing=True,
            create_pipeline_job_request={
                "parent": self._parent,
                "pipeline_job": pipeline_job(self._config, pipeline, values, name),
            },
        )
        pages = (
            "https://console.cloud.google.com/vertex-ai/pipelines/schedules"
            f"?project={self._config.vertex.project}"
        )
        request = {"parent": self._parent, "schedule": schedule}
        try:
            with errors_in_one_line("create the schedule"):
                # A retry after a lost response would create a second schedule.
                self._client.create_schedule(request=request, retry=None, timeout=REQUEST_SECONDS)
        except (NoResponse, KeyboardInterrupt) as error:
            raise possibly_submitted(error, name, pages) from None
        return pages

    def remove(self, schedule: str) -> str:
        """Remove a schedule; return an empty string, because a run in progress continues.

        Args:
          schedule: a resource name of `find`.

        Raises:
          InputError: Vertex AI refuses the request.
          ServerError: Vertex AI did not respond.
        """
        with errors_in_one_line("remove the schedule"):
            operation = self._client.delete_schedule(name=schedule, timeout=REQUEST_SECONDS)
            operation.result(timeout=REQUEST_SECONDS)
        return ""
