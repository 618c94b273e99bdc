"""`amazon-reviews submit`: hands a compiled pipeline to a cluster and follows the run."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core import exit_codes
from core.overrides import split_pair
from pipeline.config import PipelineConfig
from platforms.checks import ClusterTarget, cluster_name
from platforms.follow import PATIENCE_SECONDS, POLL_SECONDS, Run, Say, SubmitError, follow
from platforms.kubeflow.checks import check_endpoint
from platforms.package import Package, changed_values, converted_values, read_package
from platforms.parameters import check_parameters
from platforms.targets import check_target


def submit(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Path,
    parameters: Mapping[str, Any],
    wait: bool,
    say: Say,
    *,
    poll_seconds: float = POLL_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> int:
    """Submits `package` once, says the run's name and link, and follows it if `wait`.

    Args:
      config: where to submit to, and what the run may use.
      package: what `amazon-reviews compile` wrote for `target`.
      parameters: values of the pipeline's runtime parameters, in the types that it declares or
        as text.
      say: gets one line at a time.

    Returns:
      0 when the run was submitted and, if waited for, succeeded; 1 when the cluster refused it, it
      failed or was cancelled, or it can no longer be followed; 130 after Ctrl-C, which does not
      stop the run.

    Raises:
      ConfigError: a setting or parameter is missing or wrong, or there are no credentials.
      InputError: `package` is no compiled pipeline for `target`, or a parameter has a value that
        the settings do not allow.
    """
    check_submission(config, target)
    compiled = read_package(package, target)
    values = converted_values(compiled, parameters)
    check_parameters(config, target, changed_values(compiled, values))
    name = _run_name(cluster_name(config))
    try:
        run = _start(config, target, compiled, values, name)
    except SubmitError as error:
        say(str(error))
        return exit_codes.FAILED
    except KeyboardInterrupt:
        say(f"stopped; whether {name} was submitted is not known, look for it before another try")
        return exit_codes.INTERRUPTED
    say(f"submitted {run.name}")
    say(run.link)
    if not wait:
        return exit_codes.PUSHED
    return follow(run, compiled.task_names, say, poll_seconds, patience_seconds)


def _start(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Package,
    values: dict[str, Any],
    name: str,
) -> Run:
    # Each brings a client library that takes seconds to import.
    if target == "vertex":
        from platforms.vertex import client as vertex_client

        return vertex_client.start(config, package, values, name)
    from platforms.kubeflow import client as kubeflow_client

    return kubeflow_client.start(config, package, values, name)


def check_submission(config: PipelineConfig, target: ClusterTarget) -> None:
    """What can be found wrong before the pipeline is compiled, which takes a while.

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
      ConfigError: one is not NAME=VALUE.
    """
    return dict(split_pair(text, "--parameter", "epochs=3") for text in texts)


def _run_name(pipeline: str) -> str:
    """A name that no other run has, so that a run can be found again by it; Vertex AI takes it as
    the run's id: 128 characters at most."""
    return f"{pipeline[:100]}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
