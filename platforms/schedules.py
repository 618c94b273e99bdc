"""Schedules of a compiled pipeline: recurring runs on Kubeflow, schedules on Vertex AI."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from core import exit_codes
from pipeline.config import PipelineConfig
from platforms.checks import ClusterTarget, cluster_name
from platforms.follow import Report, SubmitError
from platforms.scheduled import check_cron
from platforms.submit import check_submission, pipeline_of, prepare


def create(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Path,
    parameters: Mapping[str, Any],
    cron: str,
    report: Report,
) -> int:
    """Create a schedule of `package` and report its name.

    Args:
      config, target, package, parameters, report: see `platforms.submit.submit`.
      cron: the times in UTC: minute, hour, day of the month, month, day of the week.

    Returns:
      0 if the cluster accepted the schedule; 1 if it did not; 130 after Ctrl-C.

    Raises:
      ConfigError, InputError: see `platforms.submit.submit`.
    """
    times = check_cron(cron)
    compiled, values, name = prepare(config, target, package, parameters)
    try:
        _module(target).create(config, compiled, values, name, times)
    except SubmitError as error:
        report(str(error))
        return exit_codes.FAILED
    except KeyboardInterrupt:
        report(
            f"interrupted; it is unknown whether {name} was scheduled, see --schedules before a "
            "retry"
        )
        return exit_codes.INTERRUPTED
    report(f"scheduled {name}: {times} (UTC)")
    return exit_codes.PUSHED


def show(config: PipelineConfig, target: ClusterTarget, report: Report) -> int:
    """Report the schedules of the pipeline: one line with name, times and state for each."""
    check_submission(config, target)
    try:
        found = [each for each in _module(target).find(config) if _is_of(config, each.name)]
    except SubmitError as error:
        report(str(error))
        return exit_codes.FAILED
    for each in sorted(found, key=lambda scheduled: scheduled.name):
        report(f"{each.name}  {each.cron}  {each.state}")
    if not found:
        report(f"no schedules of {cluster_name(config)}")
    return exit_codes.PUSHED


def delete(config: PipelineConfig, target: ClusterTarget, name: str, report: Report) -> int:
    """Delete the schedule with a name.

    Runs in progress continue on Vertex AI. On Kubeflow the schedule is only disabled while a run is
    in progress, which is one line and exit code 1.

    Raises:
      InputError: there is no such schedule.
    """
    check_submission(config, target)
    try:
        _module(target).delete(config, name)
    except SubmitError as error:
        report(str(error))
        return exit_codes.FAILED
    report(f"deleted {name}")
    return exit_codes.PUSHED


def _is_of(config: PipelineConfig, name: str) -> bool:
    return pipeline_of(name) == cluster_name(config)[:100]


def _module(target: ClusterTarget) -> ModuleType:
    # Each module imports a client library, which takes seconds.
    if target == "vertex":
        from platforms.vertex import schedules as vertex_schedules

        return vertex_schedules
    from platforms.kubeflow import schedules as kubeflow_schedules

    return kubeflow_schedules
