"""The submission of a compiled pipeline to a cluster."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from components.properties import RUN_PARAMETERS
from components.review_example_gen.inputs import ONLY_SAMPLE
from core import exit_codes
from core.errors import ConfigError
from core.settings import with_parameters
from pipeline.config import PipelineConfig
from platforms.checks import check_target
from platforms.clusters import Client, ClusterTarget, cluster_name
from platforms.follow import Report, follow


def check_submission(config: PipelineConfig, target: ClusterTarget) -> None:
    """Check the settings of a submission, before the compilation, which takes a while.

    Args:
      config: the settings of the pipeline.
      target: the cluster.

    Raises:
      ConfigError: a setting is missing or wrong, or there are no valid credentials.
    """
    check_target(config, target)
    _client(target).check_access(config)


def submit(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Path,
    parameters: Mapping[str, Any],
    wait: bool,
    report: Report,
) -> int:
    """Submit a compiled pipeline once, and report the name and the link of the run.

    Args:
      config: the settings, which `check_submission` has checked.
      target: the cluster.
      package: the file that was compiled from `config` for `target`.
      parameters: parameter of the run -> value, for those that differ from `config`. A number may
        be text.
      wait: whether to follow the run to its end.
      report: called with each line for the user.

    Returns:
      0 if the run was submitted and, with `wait`, succeeded. 1 if the run failed or was cancelled,
      or if its status cannot be read any more. 130 after Ctrl-C, which does not stop the run.

    Raises:
      ConfigError, InputError: a parameter is wrong, or the cluster is unreachable or denies access.
      ServerError: the cluster refused the run or did not respond.
      Interrupted: Ctrl-C before the response of the cluster. The run was perhaps submitted.
    """
    values = check_parameters(config, target, parameters)
    # The name is the id of a run on Vertex AI, which has at most 128 characters. The name of a
    # pipeline has at most 63, and the suffix has 20.
    suffix = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    name = f"{cluster_name(config)}-{suffix}"
    run = _client(target).start(config, package, values, name)
    report(f"submitted {run.name}")
    report(run.link)
    if not wait:
        return exit_codes.PUSHED
    return follow(run, report)


def check_parameters(
    config: PipelineConfig, target: ClusterTarget, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Check the parameters of a run like the settings that they override; return typed values.

    Args:
      config: the settings with which the pipeline was compiled.
      target: the cluster.
      given: parameter of the run -> value. A number may be text.

    Returns:
      The parameters in `given`, with values of the types of the settings.

    Raises:
      ConfigError: there is no such parameter, or the target does not support its value.
      InputError: a value is not allowed, or requires another compiled pipeline.
    """
    check_names(config, given)
    if not given:
        return {}
    # This import of TFX takes seconds, and most runs are submitted without a parameter.
    from components.trainer import with_training_parameters

    changed: dict[str, Any] = {}
    for section in {RUN_PARAMETERS[name] for name in given}:
        values = {name: given[name] for name in given if RUN_PARAMETERS[name] == section}
        check = with_training_parameters if section == "training" else with_parameters
        changed[section] = check(getattr(config, section), values)
    check_target(config.model_copy(update=changed), target)
    return {name: getattr(changed[RUN_PARAMETERS[name]], name) for name in given}


def check_names(config: PipelineConfig, names: Iterable[str]) -> None:
    """Check that a compiled pipeline has some parameters, without a check of their values.

    Args:
      config: the settings with which the pipeline was compiled.
      names: the names of the parameters.

    Raises:
      ConfigError: there is no such parameter, or no run of this pipeline can use it.
    """
    for name in names:
        if name not in RUN_PARAMETERS:
            known = ", ".join(RUN_PARAMETERS)
            raise ConfigError(
                f"parameter {name}: the pipeline has no such parameter; known are {known}"
            )
        if name == "input_base" and not config.data.input_base:
            # The compiled pipeline contains the name of the sample's file.
            raise ConfigError(ONLY_SAMPLE)


def _client(target: ClusterTarget) -> Client:
    """Return the client of a target, whose imports take seconds."""
    if target == "kubeflow":
        from platforms.kubeflow import client as kubeflow_client

        return kubeflow_client
    from platforms.vertex import client as vertex_client

    return vertex_client
