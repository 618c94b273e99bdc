"""The submission of a compiled pipeline to a cluster."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core import exit_codes
from core.overrides import split_pair
from pipeline.config import PipelineConfig
from platforms.checks import ClusterTarget, check_endpoint, cluster_name
from platforms.follow import PATIENCE_SECONDS, POLL_SECONDS, Report, Run, SubmitError, follow
from platforms.package import Package, changed_values, converted_values, read_package
from platforms.parameters import check_parameters
from platforms.targets import check_target

_RUN_NAME = re.compile(r"(.+)-\d{8}-\d{6}-[0-9a-f]{4}")


def submit(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Path,
    parameters: Mapping[str, Any],
    wait: bool,
    report: Report,
    *,
    poll_seconds: float = POLL_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> int:
    """Submit `package` once, report the run's name and link, and follow the run if `wait`.

    Args:
      config: the settings of the cluster, and those that the pipeline was compiled with.
      target: the platform of the cluster.
      package: the file that `amazon-reviews compile` wrote for `target`.
      parameters: values of the pipeline's runtime parameters, in their declared types or as text.
      wait: True to return after the end of the run.
      report: gets one line at a time.
      poll_seconds, patience_seconds: see `follow`.

    Returns:
      0 if the run was submitted and, with `wait`, succeeded. 1 if the cluster refused the run, if
      the run failed or was cancelled, or if its status cannot be read any more. 130 after Ctrl-C,
      which does not stop the run.

    Raises:
      ConfigError: a setting or parameter is missing or wrong, or there are no credentials.
      InputError: `package` is not a compiled pipeline for `target`, or a parameter has a value that
        the settings do not allow.
    """
    compiled, values, name = prepare(config, target, package, parameters)
    try:
        run = _start(config, target, compiled, values, name)
    except SubmitError as error:
        report(str(error))
        return exit_codes.FAILED
    except KeyboardInterrupt:
        report(
            f"interrupted; it is unknown whether {name} was submitted, check the cluster before a "
            "retry"
        )
        return exit_codes.INTERRUPTED
    report(f"submitted {run.name}")
    report(run.link)
    if not wait:
        return exit_codes.PUSHED
    return follow(run, compiled.task_names, report, poll_seconds, patience_seconds)


def prepare(
    config: PipelineConfig, target: ClusterTarget, package: Path, parameters: Mapping[str, Any]
) -> tuple[Package, dict[str, Any], str]:
    """Check a submission; return the package, the values of its parameters, and a unique name.

    Args and Raises: see `submit`.
    """
    check_submission(config, target)
    compiled = read_package(package, target)
    values = converted_values(compiled, parameters)
    check_parameters(config, target, changed_values(compiled, values))
    return compiled, values, run_name(cluster_name(config))


def _start(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Package,
    values: dict[str, Any],
    name: str,
) -> Run:
    # Each module imports a client library, which takes seconds.
    if target == "vertex":
        from platforms.vertex import client as vertex_client

        return vertex_client.start(config, package, values, name)
    from platforms.kubeflow import client as kubeflow_client

    return kubeflow_client.start(config, package, values, name)


def check_submission(config: PipelineConfig, target: ClusterTarget) -> None:
    """Check the settings of a submission before the pipeline is compiled, which takes a while.

    Raises:
      ConfigError: a setting is missing or wrong, or there are no credentials.
    """
    check_target(config, target)
    if target == "vertex":
        from platforms.vertex import client as vertex_client

        vertex_client.connect(config)
        return
    check_endpoint(config)


def read_parameters(texts: Sequence[str]) -> dict[str, str]:
    """Return the names and values of parameters: `["epochs=3"]` -> `{"epochs": "3"}`.

    Raises:
      ConfigError: a text is not NAME=VALUE.
    """
    return dict(split_pair(text, "--parameter", "epochs=3") for text in texts)


def run_name(pipeline: str) -> str:
    """Return a unique name for a run, of at most 128 characters: it is the id on Vertex AI."""
    return f"{pipeline[:100]}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def pipeline_of(run: str) -> str:
    """Return the pipeline in the name of a run, at most 100 characters; empty: not such a name."""
    found = _RUN_NAME.fullmatch(run)
    return found[1] if found else ""
