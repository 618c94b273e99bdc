"""The runs of a local pipeline for the commands `runs` and `report`."""

from __future__ import annotations

import os
from typing import Any

from components.run_report.history import Run, read_runs
from core.errors import InputError
from core.metadata import open_store
from core.settings import flat_settings
from core.storage import is_url
from pipeline.config import PipelineConfig


def find_runs(config: PipelineConfig) -> list[Run]:
    """Return all runs in `paths.metadata`, the newest first.

    Raises:
      InputError: there is no run, `paths.metadata` is a URL, or the recorded outcome of one cannot
        be read.
      ConfigError: `paths.metadata` cannot be opened.
    """
    if is_url(config.paths.metadata):
        raise InputError(
            f"paths.metadata: {config.paths.metadata} is not a file; set the file with the runs of "
            "this machine, or see the page of the cluster for its runs and their reports"
        )
    runs = all_runs(config)
    if not runs:
        raise InputError(
            f"paths.metadata: no run in {config.paths.metadata}; `amazon-reviews run` with the "
            "same settings starts one. If the runs are in another file, pass their --config, or "
            "set paths.metadata"
        )
    return runs


def find_run(config: PipelineConfig, run_id: str | None) -> Run:
    """Return one of the runs in `paths.metadata`.

    Args:
      config: the settings.
      run_id: the id of the run, or its beginning; None: the newest run.

    Raises:
      InputError: no run or several runs have such an id, or a recorded outcome cannot be read.
      ConfigError: `paths.metadata` cannot be opened.
    """
    runs = find_runs(config)
    if run_id is None:
        return runs[0]
    found = [run for run in runs if run_id and run.id.startswith(run_id)]
    if len(found) == 1:
        return found[0]
    problem = f"{len(found)} ids begin with {run_id}" if found else "no run has this id"
    raise InputError(f"run {run_id}: {problem}; `amazon-reviews runs` lists the ids")


def setting(run: Run, key: str) -> Any:
    """Return the value of a setting of a run; None if it is unknown.

    Args:
      run: the run.
      key: the name of the setting, as `section.key`.
    """
    return flat_settings(run.settings).get(key)


def all_runs(config: PipelineConfig) -> list[Run]:
    """Return all runs in `paths.metadata`, the newest first; an empty list if there is none.

    Raises:
      InputError: the recorded outcome of a run cannot be read.
      ConfigError: `paths.metadata` cannot be opened.
    """
    location = config.paths.metadata
    # Opening a file that is missing would create it.
    if not os.path.exists(location):
        return []
    return read_runs(open_store(location))
