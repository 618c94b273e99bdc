"""Recurring runs of Kubeflow Pipelines, by the REST API of its server."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from pipeline.config import PipelineConfig
from platforms.clusters import ScheduleTime
from platforms.follow import ENDS
from platforms.input_cache import disable_cache
from platforms.kubeflow.api import (
    UI_VARIABLE,
    connect,
    readable_errors,
    required_id,
    submit_once,
)
from platforms.kubeflow.client import read_pipeline

_PATH = "recurringruns"


class Schedules:
    """The recurring runs of a pipeline, see `platforms.clusters.Schedules`.

    Kubeflow Pipelines does not replace its own placeholders, such as `[[ScheduledTime]]`, in a
    recurring run with a compiled pipeline: it compiles the parameters into the workflow when the
    recurring run is created. Argo Workflows replaces the variables in it at the start of each run.
    The time of the schedule is in a label of the workflow.

    Args:
      config: the settings of the pipeline.

    Raises:
      ConfigError: the endpoint is unreachable, or a setting is wrong.
      ServerError: the server refused a request, or limits the rate.
    """

    replaced = re.compile(r"\{\{workflow\.[^{}]+\}\}")
    time = ScheduleTime(
        "{{workflow.labels.scheduledworkflows.kubeflow.org/workflowEpoch}}", "1795834800"
    )

    def __init__(self, config: PipelineConfig):
        self._config = config
        self._api, self._experiment_id = connect(config)

    def find(self, name: str) -> list[str]:
        """Return the ids of the recurring runs with a name.

        Raises:
          ConfigError: the endpoint is unreachable, or a setting is wrong.
          ServerError: the server refused the request, or limits the rate.
        """
        query = {"experiment_id": self._experiment_id, "page_size": "200"}
        found: list[str] = []
        while True:
            with readable_errors(self._config):
                page = self._api("GET", _PATH, query=query)
                found += [
                    required_id(each, "recurring_run_id")
                    for each in page.get("recurringRuns") or []
                    if each.get("display_name") == name
                ]
            if not page.get("next_page_token"):
                return found
            query["page_token"] = page["next_page_token"]

    def create(self, package: Path, values: dict[str, Any], name: str, cron: str) -> str:
        """Create a recurring run, whose runs do not overlap; return the URL of its page.

        A time at which the cluster was down is left out. With a window of several spans the next
        run reads its span too; with `data.window: 1` no run reads it.

        Args:
          package: the file of the compiled pipeline.
          values: parameter of each run -> value.
          name: the name of the recurring run.
          cron: a cron expression with five fields.

        Raises:
          ConfigError: the endpoint is unreachable, or a setting is wrong.
          ServerError: the server refused the recurring run, limits the rate, or did not respond.
          Interrupted: Ctrl-C before the response.
        """
        config = self._config
        pages = f"{os.environ.get(UI_VARIABLE, self._api.endpoint).rstrip('/')}/#/recurringrun"
        pipeline = read_pipeline(package)
        if not config.cache:
            disable_cache(pipeline.tasks)
        recurring = {
            "display_name": name,
            "experiment_id": self._experiment_id,
            "pipeline_spec": pipeline.document,
            "runtime_config": {"parameters": values, "pipeline_root": config.paths.root},
            "service_account": config.kubeflow.service_account or "",
            # A cron expression of Kubeflow Pipelines begins with a field for seconds.
            "trigger": {"cron_schedule": {"cron": f"0 {cron}"}},
            "max_concurrency": "1",
            "no_catchup": True,
            "mode": "ENABLE",
        }
        created = submit_once(config, self._api, _PATH, recurring, pages, "recurring_run_id")
        return f"{pages}/details/{created}"

    def remove(self, schedule: str) -> str:
        """Remove a recurring run, or disable it while one of its runs is in progress.

        Kubernetes deletes the workflows of a recurring run together with it, which would end that
        run.

        Args:
          schedule: an id of `find`.

        Returns:
          The name of the run in progress; empty if the recurring run is removed.

        Raises:
          ConfigError: the endpoint is unreachable, or a setting is wrong.
          ServerError: the server refused the request, or limits the rate.
        """
        at_limit = "the schedule is not removed, but may be disabled"
        with readable_errors(self._config, at_limit):
            self._api("POST", f"{_PATH}/{schedule}:disable")
            run = self._newest_run(schedule)
            if run and run.get("state") not in ENDS:
                return str(run["display_name"])
            self._api("DELETE", f"{_PATH}/{schedule}")
            return ""

    def _newest_run(self, schedule: str) -> dict[str, Any] | None:
        query = {
            "experiment_id": self._experiment_id,
            "page_size": "200",
            "sort_by": "created_at desc",
        }
        runs: list[dict[str, Any]] = self._api("GET", "runs", query=query).get("runs") or []
        return next((run for run in runs if run.get("recurring_run_id") == schedule), None)
