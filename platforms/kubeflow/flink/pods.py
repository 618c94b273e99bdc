"""The names, labels and security settings that the pods of Flink and of the job server share."""

from __future__ import annotations

import math
from typing import Any

from pipeline.config import PipelineConfig
from platforms.jobs.kubernetes.pod_template import (
    LABELS,
    container_security,
    pod_metadata,
    pod_security,
)

FLINK = "flink"
"""Component label of the pods of Flink."""
JOB_SERVER = "flink-job-server"
"""Component label of the pod of the job server."""
REST_PORT = 8081
JOB_PORT = 8099
"""The port at which the job server accepts pipelines."""


def rest_service(config: PipelineConfig) -> str:
    """Return the name of the Service that the operator creates for Flink's REST API."""
    return f"{config.beam.flink.kubernetes.name}-rest"


def job_server(config: PipelineConfig) -> str:
    """Return the name of the Deployment and the Service of the job server."""
    return f"{config.beam.flink.kubernetes.name}-job-server"


def metadata(config: PipelineConfig, name: str, component: str) -> dict[str, Any]:
    """Return the metadata of an object."""
    return {
        "name": name,
        "namespace": config.kubeflow.namespace,
        "labels": labels(config, component),
    }


def labels(config: PipelineConfig, component: str) -> dict[str, str]:
    """Return the labels of the objects and pods of a component of this cluster."""
    return {
        **LABELS,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/instance": config.beam.flink.kubernetes.name,
    }


def selector(config: PipelineConfig, component: str) -> dict[str, Any]:
    """Return the selector of the pods of a component of this cluster."""
    return {"matchLabels": labels(config, component)}


def pod_template(
    config: PipelineConfig, component: str, containers: list[dict[str, Any]], **fields: Any
) -> dict[str, Any]:
    """Return the template of the pods of a component.

    Args:
      config: the settings.
      component: `FLINK` or `JOB_SERVER`.
      containers: containers of the pod; each receives a security context.
      fields: further fields of the pod's spec.
    """
    kubernetes = config.beam.flink.kubernetes
    tolerations = [each.model_dump(exclude_none=True) for each in kubernetes.tolerations]
    secured = [
        {**each, "securityContext": {**each.get("securityContext", {}), **container_security()}}
        for each in containers
    ]
    return {
        "metadata": pod_metadata(labels(config, component)),
        "spec": {
            "containers": secured,
            "securityContext": pod_security(),
            **({"nodeSelector": kubernetes.node_selector} if kubernetes.node_selector else {}),
            **({"tolerations": tolerations} if tolerations else {}),
            **fields,
        },
    }


def resources(cpu: float, memory: str) -> dict[str, dict[str, str]]:
    """Return equal requests and limits, so that the pod is among the last to be evicted."""
    amounts = {"cpu": f"{math.ceil(cpu * 1000)}m", "memory": memory}
    return {"requests": amounts, "limits": dict(amounts)}


def mebibytes(memory: str) -> int:
    """Return the MiB of memory as Java writes it, such as `512m` or `2g`."""
    return int(memory[:-1]) * {"m": 1, "g": 1024}[memory[-1]]
