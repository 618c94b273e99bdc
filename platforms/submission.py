"""The submission of a compiled pipeline to a cluster: one run, or recurring runs on Kubeflow."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from core import exit_codes
from core.errors import ConfigError, InputError
from pipeline.config import PipelineConfig
from platforms.checks import ClusterTarget, check_endpoint, cluster_name
from platforms.follow import Report, follow
from platforms.parameters import check_parameters
from platforms.targets import check_target


@dataclass(frozen=True)
class Package:
    """A compiled pipeline: the PipelineSpec, and the PipelineJob around it for Vertex AI, or the
    settings for Kubernetes."""

    job: dict[str, Any]
    spec: dict[str, Any]
    platform: dict[str, Any]


def read_package(file: Path) -> Package:
    """Read what `platforms.compile` wrote: JSON for Vertex AI, YAML for Kubeflow."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        job = json.loads(text)
        return Package(job, job["pipelineSpec"], {})
    spec, *others = yaml.safe_load_all(text)
    return Package({}, spec, others[0] if others else {})


@dataclass(frozen=True)
class Schedule:
    """A recurring run on Kubeflow; `cron` has five fields in UTC."""

    id: str
    name: str
    cron: str
    state: str


def check_submission(config: PipelineConfig, target: ClusterTarget) -> None:
    """Check the settings of a submission before the pipeline is compiled, which takes a while.

    Raises:
      ConfigError: a setting is missing or wrong, or there are no valid credentials.
    """
    check_target(config, target)
    if target == "vertex":
        _client(target).check_credentials(config)
    else:
        check_endpoint(config)


def submit(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Path,
    parameters: Mapping[str, Any],
    wait: bool,
    report: Report,
) -> int:
    """Submit `package` once, report the run's name and link, and follow the run if `wait`.

    `package` is the file that was compiled from `config` for `target`. A number in `parameters` may
    be text.

    Returns:
      0 if the run was submitted and, with `wait`, succeeded. 1 if the run failed or was cancelled,
      or if its status cannot be read any more. 130 after Ctrl-C, which does not stop the run.

    Raises:
      ConfigError, InputError: a setting or parameter is missing or wrong, or there are no
        credentials.
      SubmitError: the cluster refused the run or did not respond.
    """
    compiled, values, name = _prepare(config, target, package, parameters)
    run = _client(target).start(config, compiled, values, name)
    report(f"submitted {run.name}")
    report(run.link)
    if not wait:
        return exit_codes.PUSHED
    tasks = list(compiled.spec["root"]["dag"]["tasks"])
    return follow(run, tasks, report)


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


def create_schedule(
    config: PipelineConfig,
    package: Path,
    parameters: Mapping[str, Any],
    cron: str,
    report: Report,
) -> None:
    """Create a schedule of `package` with times in UTC on Kubeflow, and report its name.

    Raises: see `submit` and `check_cron`.
    """
    times = check_cron(cron)
    compiled, values, name = _prepare(config, "kubeflow", package, parameters)
    _client("kubeflow").create_schedule(config, compiled, values, name, times)
    report(f"scheduled {name}: {times} (UTC)")


def show_schedules(config: PipelineConfig, report: Report) -> None:
    """Report the schedules of the pipeline: one line with name, times and state for each."""
    check_submission(config, "kubeflow")
    found = _client("kubeflow").find_schedules(config)
    for each in sorted(found, key=lambda schedule: schedule.name):
        report(f"{each.name}  {each.cron}  {each.state}")
    if not found:
        report(f"no schedules of {cluster_name(config)}")


def delete_schedule(config: PipelineConfig, name: str, report: Report) -> None:
    """Delete the schedule with a name. While one of its runs is in progress, it is only disabled.

    Raises:
      InputError: there is no such schedule.
      SubmitError: a run is in progress, or the request failed.
    """
    check_submission(config, "kubeflow")
    client = _client("kubeflow")
    ids = [each.id for each in client.find_schedules(config) if each.name == name]
    if not ids:
        raise InputError(f"no schedule {name}; --schedules lists them")
    client.delete_schedules(config, name, ids)
    report(f"deleted {name}")


def _prepare(
    config: PipelineConfig, target: ClusterTarget, package: Path, parameters: Mapping[str, Any]
) -> tuple[Package, dict[str, Any], str]:
    """Check a submission; return the package, the values of its parameters, and a unique name.

    The name is the id of a run on Vertex AI, which has at most 128 characters.

    Raises: see `submit`.
    """
    check_submission(config, target)
    values = check_parameters(config, target, parameters)
    suffix = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    return read_package(package), values, f"{cluster_name(config)[:100]}-{suffix}"


def _client(target: ClusterTarget) -> Any:
    """Return the module with `start` and the functions for schedules.

    Each module imports a client library, which takes seconds.
    """
    return import_module(f"platforms.{target}.client")
