"""The schedule of a pipeline on a cluster, which starts a run at each of its times.

A pipeline has at most one schedule, because runs of two schedules would push in turns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms.clusters import ClusterTarget, Schedules, cluster_name
from platforms.follow import Report
from platforms.submission import check_names, check_parameters

_FIELD = re.compile(r"[0-9A-Za-z*/,?-]+")
_VALUE = re.compile(r"(?<![/\w])[0-9]+")
"""A number in a field of a cron expression that is no step."""
_RANGES = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week, of which 0 is Sunday", 0, 6),
)
"""The name, the lowest and the greatest value of each field of a cron expression."""
_PLACEHOLDER = re.compile(r"\[\[.+?\]\]|\{\{.+?\}\}")
"""The form of the placeholders of Kubeflow Pipelines, Argo Workflows and Vertex AI."""
_WITH_PLACEHOLDER = ("input_base", "span")


def check_cron(cron: str) -> str:
    """Return a cron expression with single spaces between its five fields.

    Args:
      cron: minute, hour, day of the month, month and day of the week. The server checks more.

    Raises:
      ConfigError: the expression does not have five fields, or a field has an unknown character or
        a number that is out of its range.
    """
    fields = cron.split()
    if len(fields) != 5 or not all(map(_FIELD.fullmatch, fields)):
        raise ConfigError(
            f"--cron: {cron!r} is no cron expression; set minute, hour, day of the month, month "
            "and day of the week in UTC, such as '0 3 * * *' for each day at 03:00"
        )
    for field, (name, lowest, greatest) in zip(fields, _RANGES, strict=True):
        for value in _VALUE.findall(field):
            if not lowest <= int(value) <= greatest:
                raise ConfigError(
                    f"--cron: {cron!r} has {value} as the {name}; set {lowest} to {greatest}"
                )
    return " ".join(fields)


def create(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Path,
    parameters: Mapping[str, Any],
    cron: str,
    report: Report,
    options: str = "",
) -> None:
    """Create the schedule of a compiled pipeline, and report its name and link.

    Args:
      config: the settings, which `submission.check_submission` has checked.
      target: the cluster.
      package: the file that was compiled from `config` for `target`.
      parameters: parameter of each run -> value, for those that differ from `config`. `span` and
        `input_base` may contain a placeholder that the cluster replaces by the time of the run.
      cron: the result of `check_cron`.
      report: called with each line for the user.
      options: the options of a command that select the settings, after a space, for the command in
        an error message.

    Raises:
      ConfigError: the pipeline has a schedule already, a parameter or its placeholder is wrong, or
        the cluster is unreachable or denies access.
      InputError: a value of a parameter is not allowed, or the cluster denies access.
      ServerError: the cluster refused the schedule or did not respond.
      Interrupted: Ctrl-C before the response of the cluster. The schedule was perhaps created.
    """
    name = cluster_name(config)
    schedules = _schedules(config, target)
    values = _values(config, target, schedules, parameters)
    if schedules.find(name):
        raise ConfigError(
            f"{name} has a schedule already; remove it with `amazon-reviews schedule --target "
            f"{target} --remove{options}`"
        )
    link = schedules.create(package, values, name, cron)
    report(f"scheduled {name} at {cron} UTC")
    report(link)


def remove(config: PipelineConfig, target: ClusterTarget, report: Report) -> None:
    """Remove the schedule of a pipeline, and report it. A run that has started continues.

    If the removal would end that run, the schedule only stops. A later call removes it.

    Args:
      config: the settings, which `submission.check_submission` has checked.
      target: the cluster.
      report: called with each line for the user.

    Raises:
      ConfigError, InputError: the cluster is unreachable or denies access.
      ServerError: the cluster refused the request or did not respond.
    """
    name, schedules = cluster_name(config), _schedules(config, target)
    found = schedules.find(name)
    if not found:
        report(f"{name} has no schedule")
    for run in map(schedules.remove, found):
        if run:
            report(
                f"stopped the schedule of {name}: it starts no more runs; its removal would end "
                f"{run}, which is in progress, so repeat the command after that run"
            )
        else:
            report(f"removed the schedule of {name}")


def _values(
    config: PipelineConfig,
    target: ClusterTarget,
    schedules: Schedules,
    parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """Check the parameters of the runs, with an example in place of each placeholder.

    Returns:
      The parameters, with values of the types of the settings and with their placeholders.

    Raises:
      ConfigError: a parameter or a placeholder is wrong.
      InputError: a value is not allowed.
    """
    check_names(config, parameters)
    with_placeholder: dict[str, str] = {}
    checked: dict[str, Any] = {}
    time = schedules.time
    for key, value in parameters.items():
        found = _PLACEHOLDER.findall(value) if isinstance(value, str) else []
        if not found:
            checked[key] = value
            continue
        if key not in _WITH_PLACEHOLDER:
            raise ConfigError(
                f"parameter {key}: {value!r} has a placeholder; only "
                f"{' and '.join(_WITH_PLACEHOLDER)} may have one"
            )
        if not all(map(schedules.replaced.fullmatch, found)):
            raise ConfigError(
                f"parameter {key}: {value!r} has a placeholder that a schedule of {target} does "
                f"not replace; the time of the schedule is {time.placeholder}"
            )
        with_placeholder[key] = value
        complete = value.replace(time.placeholder, time.example)
        # The values of other placeholders are unknown. Those of a span are parts of a date, and
        # those of a folder are parts of its path.
        if _PLACEHOLDER.search(complete):
            complete = time.example if key == "span" else _PLACEHOLDER.sub("1", complete)
        checked[key] = complete
    return check_parameters(config, target, checked) | with_placeholder


def _schedules(config: PipelineConfig, target: ClusterTarget) -> Schedules:
    """Return the schedules of a target, the imports of whose module take seconds."""
    if target == "kubeflow":
        from platforms.kubeflow import schedules as kubeflow_schedules

        return kubeflow_schedules.Schedules(config)
    from platforms.vertex import schedules as vertex_schedules

    return vertex_schedules.Schedules(config)
