"""The Deployment and the Service of Beam's job server, which translates pipelines for Flink."""

from __future__ import annotations

from typing import Any

from core.flink.names import ARTIFACT_PORT, EXIT_WITHOUT_MEMORY
from pipeline.config import PipelineConfig
from platforms.kubeflow.flink.pods import (
    JOB_PORT,
    JOB_SERVER,
    REST_PORT,
    job_server,
    mebibytes,
    metadata,
    pod_template,
    resources,
    rest_service,
    selector,
)

_EXPANSION_PORT = 8097
_CPU = 1.0
_OUTSIDE_THE_HEAP = 512
"""MiB of the JVM that are not in the heap."""
_USER = 1000
"""A user id without privileges; the image starts as root, which `restricted` forbids."""


def deployment(config: PipelineConfig) -> dict[str, Any]:
    """Return the Deployment of the job server."""
    flink = config.beam.flink
    memory = f"{mebibytes(flink.job_server_memory) + _OUTSIDE_THE_HEAP}Mi"
    container = {
        "name": "job-server",
        "image": flink.kubernetes.job_server_image,
        "args": [
            f"--flink-master={rest_service(config)}:{REST_PORT}",
            # The job server sends this host to its clients, as the address for their files.
            "--job-host=$(POD_IP)",
            f"--job-port={JOB_PORT}",
            f"--artifact-port={ARTIFACT_PORT}",
            f"--expansion-port={_EXPANSION_PORT}",
            "--artifacts-dir=/tmp/beam-artifacts",
        ],
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {
                "name": "JAVA_TOOL_OPTIONS",
                "value": f"-Xmx{flink.job_server_memory} {EXIT_WITHOUT_MEMORY}",
            },
        ],
        "ports": [
            {"name": "grpc-job", "containerPort": JOB_PORT},
            {"name": "grpc-artifact", "containerPort": ARTIFACT_PORT},
        ],
        "readinessProbe": {"tcpSocket": {"port": JOB_PORT}},
        "resources": resources(_CPU, memory),
        "securityContext": {"runAsUser": _USER, "runAsGroup": _USER},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    template = pod_template(
        config,
        JOB_SERVER,
        [container],
        automountServiceAccountToken=False,
        volumes=[{"name": "tmp", "emptyDir": {}}],
    )
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(config, job_server(config), JOB_SERVER),
        "spec": {
            # The state of the jobs is in the memory of one server.
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": selector(config, JOB_SERVER),
            "template": template,
        },
    }


def service(config: PipelineConfig) -> dict[str, Any]:
    """Return the Service of the job server."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(config, job_server(config), JOB_SERVER),
        "spec": {
            "selector": selector(config, JOB_SERVER)["matchLabels"],
            "ports": [
                {"name": "grpc-job", "port": JOB_PORT, "targetPort": "grpc-job"},
                {"name": "grpc-artifact", "port": ARTIFACT_PORT, "targetPort": "grpc-artifact"},
            ],
        },
    }
