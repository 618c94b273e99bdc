"""Runs on Kubeflow Pipelines."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms.follow import DELETED, ENDS, SUCCESS_STATES, Run, Status, Task
from platforms.input_cache import set_cache
from platforms.kubeflow.api import PORT_FORWARD, UI_VARIABLE, Api, Refused, connect, submit_once
from platforms.kubeflow.pods import RunPods
from platforms.pipeline_spec import CompiledPipeline, tasks_of

_NOT_FOUND = 404
"""The HTTP status for an object that does not exist."""


def check_access(config: PipelineConfig) -> None:
    """Check that `kubeflow.endpoint` is a URL, without a request to it.

    Raises:
      ConfigError: the setting is missing, or not a URL.
    """
    endpoint = config.kubeflow.endpoint or ""
    if not endpoint.startswith(("http://", "https://")):
        raise ConfigError(
            f"kubeflow.endpoint: {endpoint or 'not set'}; set the URL of the Kubeflow Pipelines "
            f"API, http://127.0.0.1:8080 after `{PORT_FORWARD}`"
        )


def start(config: PipelineConfig, package: Path, values: dict[str, Any], name: str) -> Run:
    """Submit a compiled pipeline; return when the server has accepted the run.

    Args:
      config: the settings of the pipeline.
      package: the file of the compiled pipeline.
      values: parameter of the run -> value.
      name: the name of the run.

    Raises:
      ConfigError: the endpoint is unreachable, or a setting is wrong.
      ServerError: the server refused the run, limits the rate, or did not respond. In the last case
        the run was perhaps submitted.
      Interrupted: Ctrl-C before the response. The run was perhaps submitted.
    """
    api, experiment_id = connect(config)
    runs = f"{os.environ.get(UI_VARIABLE, api.endpoint).rstrip('/')}/#/runs"
    pipeline = read_pipeline(package)
    set_cache(config, pipeline.tasks, values)
    run = {
        "display_name": name,
        "experiment_id": experiment_id,
        "pipeline_spec": pipeline.document,
        "runtime_config": {"parameters": values, "pipeline_root": config.paths.root},
        "service_account": config.kubeflow.service_account or "",
    }
    run_id = submit_once(config, api, "runs", run, runs, "run_id")
    link, pods = f"{runs}/details/{run_id}", RunPods(config.kubeflow.namespace, run_id)
    status = partial(_status, api, run_id, pods)
    return Run(name, list(pipeline.tasks), link, pods.log_command, status)


def read_pipeline(package: Path) -> CompiledPipeline:
    """Return a compiled pipeline, whose document is a field of a request.

    Args:
      package: the file of the compiled pipeline.
    """
    # A second document, if there is one, has the settings for Kubernetes.
    spec, *others = yaml.safe_load_all(package.read_text(encoding="utf-8"))
    document = {"pipeline_spec": spec, "platform_spec": others[0]} if others else spec
    return CompiledPipeline(document, tasks_of(spec))


def _status(api: Api, run_id: str, pods: RunPods) -> Status:
    try:
        run = api("GET", f"runs/{run_id}")
    except Refused as error:
        # Another server at the endpoint has another message.
        if error.status == _NOT_FOUND and f"Run {run_id} not found" in str(error):
            return Status(DELETED)
        raise
    details = run.get("run_details") or {}
    tasks = [
        Task(task.get("display_name") or "", task.get("state") or "", _message(task))
        for task in details.get("task_details") or []
    ]
    state = _state(run)
    if state == "FAILED" and pods.was_cancelled():
        state = "CANCELED"
    waits = [] if state in ENDS else pods.waits()
    errors = pods.errors() if state == "FAILED" else []
    verdict = pods.verdict() if state in SUCCESS_STATES else ""
    return Status(state, tasks, _message(run), waits, errors, verdict)


def _state(run: dict[str, Any]) -> str:
    """Return the state of a run, which is `CANCELED` if its history of states has a cancellation.

    The API calls such a run `FAILED` in the end. The history may lack the cancellation of a run
    that ends at once; then only its Workflow has the difference, see `RunPods.was_cancelled`.
    """
    state = run.get("state") or ""
    history = [each.get("state") for each in run.get("state_history") or []]
    return "CANCELED" if state == "FAILED" and "CANCELING" in history else state


def _message(task_or_run: dict[str, Any]) -> str:
    return (task_or_run.get("error") or {}).get("message") or ""
