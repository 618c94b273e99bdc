"""Schedules of a compiled pipeline: recurring runs on Kubeflow, schedules on Vertex AI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import exit_codes
from core.errors import ConfigError, InputError
from pipeline.config import PipelineConfig
from platforms.checks import ClusterTarget, cluster_name
from platforms.follow import Report, SubmitError
from platforms.submission import check_submission, client_of, pipeline_of, prepare


@dataclass(frozen=True)
class Schedule:
    """A schedule.

    Attributes:
      id: the id that the cluster gave it.
      name: its name.
      cron: its times, five fields in UTC.
      state: its state, in words of the cluster.
    """

    id: str
    name: str
    cron: str
    state: str


def check_cron(text: str) -> str:
    """Return the five fields of a cron expression, separated by one space; the cluster checks them.

    Raises:
      ConfigError: `text` has another number of fields.
    """
    fields = text.split()
    if len(fields) != 5:
        raise ConfigError(
            f"--schedule: {text!r} has {len(fields)} fields instead of 5: minute, hour, day of the "
            "month, month, day of the week; `0 3 * * 1` is every Monday at 3:00 UTC"
        )
    return " ".join(fields)


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
      config, target, package, parameters, report: see `platforms.submission.submit`.
      cron: the times in UTC: minute, hour, day of the month, month, day of the week.

    Returns:
      0 if the cluster accepted the schedule; 1 if it did not; 130 after Ctrl-C.

    Raises:
      ConfigError, InputError: see `platforms.submission.submit`.
    """
    times = check_cron(cron)
    compiled, values, name = prepare(config, target, package, parameters)
    try:
        client_of(target).create_schedule(config, compiled, values, name, times)
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
    pipeline = cluster_name(config)
    try:
        found = client_of(target).find_schedules(config)
    except SubmitError as error:
        report(str(error))
        return exit_codes.FAILED
    own = [each for each in found if pipeline_of(each.name) == pipeline[:100]]
    for each in sorted(own, key=lambda schedule: schedule.name):
        report(f"{each.name}  {each.cron}  {each.state}")
    if not own:
        report(f"no schedules of {pipeline}")
    return exit_codes.PUSHED


def delete(config: PipelineConfig, target: ClusterTarget, name: str, report: Report) -> int:
    """Delete the schedule with a name.

    Runs in progress continue on Vertex AI. On Kubeflow the schedule is only disabled while a run is
    in progress, which is one line and exit code 1.

    Raises:
      InputError: there is no such schedule.
    """
    check_submission(config, target)
    client = client_of(target)
    try:
        ids = [each.id for each in client.find_schedules(config) if each.name == name]
        if not ids:
            raise InputError(f"no schedule {name} on {target}; --schedules lists them")
        client.delete_schedules(config, name, ids)
    except SubmitError as error:
        report(str(error))
        return exit_codes.FAILED
    report(f"deleted {name}")
    return exit_codes.PUSHED
