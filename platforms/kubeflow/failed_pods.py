"""The pods of a failed run on Kubeflow Pipelines.

The API of Kubeflow Pipelines has no error message of a failed step, and what it calls `pod_name` is
the id of a node of the Workflow. Kubernetes has the names of the pods and their logs.
"""

from __future__ import annotations

import re

import urllib3
from kubernetes.client import CoreV1Api
from kubernetes.client.exceptions import ApiException

from core.errors import InputError
from platforms.training_jobs.client import connect

_CONNECT_AND_READ_SECONDS = (3.0, 10.0)
_LINES = 100
_FAILED = "status.phase=Failed"
_CONTAINER = "main"
"""The container of a step; the others of its pod belong to Argo."""
_ERROR = re.compile(r"^(?!Error: exit status)[\w.]+: .+", re.MULTILINE)
"""A line of our entry point or the last line of a traceback, in contrast to one of the launcher."""


def log_command(namespace: str, run_id: str) -> str:
    """Return the command that shows the end of the log of each failed step."""
    return (
        f"kubectl get pods -n {namespace} -l pipeline/runid={run_id} --field-selector={_FAILED} "
        f"-o name | xargs -I POD kubectl logs -n {namespace} POD -c {_CONTAINER} --tail={_LINES}"
    )


def last_errors(namespace: str, run_id: str) -> list[str]:
    """Return `POD: ERROR` for each failed step; none if this machine cannot read the pods."""
    try:
        api = CoreV1Api(connect())
        failed = api.list_namespaced_pod(
            namespace,
            label_selector=f"pipeline/runid={run_id}",
            field_selector=_FAILED,
            _request_timeout=_CONNECT_AND_READ_SECONDS,
        )
        errors = []
        for pod in failed.items:
            log = api.read_namespaced_pod_log(
                pod.metadata.name,
                namespace,
                container=_CONTAINER,
                tail_lines=_LINES,
                _preload_content=False,
                _request_timeout=_CONNECT_AND_READ_SECONDS,
            )
            found = _ERROR.findall(log.data.decode(errors="replace"))
            if found:
                errors.append(f"{pod.metadata.name}: {found[-1]}")
        return errors
    except (InputError, ApiException, urllib3.exceptions.HTTPError):
        return []
