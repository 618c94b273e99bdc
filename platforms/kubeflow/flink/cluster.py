"""The FlinkDeployment: a session cluster, with Beam's Python workers next to each TaskManager."""

from __future__ import annotations

import math
import re
from typing import Any

from core.errors import ConfigError
from core.flink.names import EXIT_WITHOUT_MEMORY, WORKER, restart_strategy
from pipeline.config import PipelineConfig
from platforms.checks import missing
from platforms.jobs.kubernetes.pod_template import volume_mounts, volumes
from platforms.kubeflow.flink.pods import FLINK, mebibytes, metadata, pod_template, resources

INTERNAL_PORTS = {
    "taskmanager.data.port": 6121,
    "taskmanager.rpc.port": 6122,
    "jobmanager.rpc.port": 6123,
    "blob.server.port": 6124,
    "metrics.internal.query-service.port": 6125,
}
"""The ports of Flink's own connections. Two of them are random by default, and a NetworkPolicy
requires fixed ones."""
WORKER_PORT = 50000
"""The port of the pool of Python workers, which only the TaskManager of the same pod uses."""

_WORKER = f"/opt/venv/bin/{WORKER}"
_LINE_OF_IMAGE = {
    "job_server_image": re.compile(r"beam_flink(\d+)\.(\d+)_job_server"),
    "image": re.compile(r"(?:^|/)flink:(\d+)\.(\d+)"),
}
"""Setting -> the line of Flink in the names of the public images."""
_JOB_MANAGER = {"cpu": 1.0, "memory": "2g"}
_FLINK_USER = 9999
"""The user `flink` of the image; the image starts as root, which `restricted` forbids."""


def flink_deployment(config: PipelineConfig) -> dict[str, Any]:
    """Return the manifest of the cluster.

    Raises:
      ConfigError: `cluster.image` is missing, or the TaskManagers have too little memory.
    """
    _check(config)
    kubernetes = config.beam.flink.kubernetes
    return {
        "apiVersion": "flink.apache.org/v1beta1",
        "kind": "FlinkDeployment",
        "metadata": metadata(config, kubernetes.name, FLINK),
        "spec": {
            "image": kubernetes.image,
            "flinkVersion": kubernetes.flink_version,
            # In the other mode, `native`, Flink requests TaskManagers when a job starts, and each
            # job would wait for their pods and their Python workers.
            "mode": "standalone",
            "serviceAccount": kubernetes.service_account,
            "flinkConfiguration": _configuration(config),
            "jobManager": {
                "replicas": 1,
                "resource": dict(_JOB_MANAGER),
                "podTemplate": pod_template(config, FLINK, [_main_container()]),
            },
            "taskManager": {
                "replicas": kubernetes.task_managers,
                "resource": {
                    "cpu": kubernetes.task_manager_cpu,
                    "memory": kubernetes.task_manager_memory,
                },
                "podTemplate": _task_manager(config),
            },
        },
    }


def _configuration(config: PipelineConfig) -> dict[str, str]:
    """Return Flink's configuration. All values are text, which every version of the CRD accepts."""
    flink, kubeflow = config.beam.flink, config.kubeflow
    values = {
        "taskmanager.numberOfTaskSlots": flink.kubernetes.slots,
        # A pipeline has many small exchanges, and each one needs buffers.
        "taskmanager.memory.network.min": flink.network_memory,
        "taskmanager.memory.network.max": flink.network_memory,
        "taskmanager.memory.segment-size": "16kb",
        # The pool of workers of a new pod needs this time to start.
        **restart_strategy(flink.kubernetes.restarts, seconds=10),
        # Flink's own `taskmanager.jvm-exit-on-oom` does not see the threads of Beam.
        "env.java.opts.taskmanager": EXIT_WITHOUT_MEMORY,
        **INTERNAL_PORTS,
    }
    if kubeflow.service_account:
        # The Python workers access the same buckets as the steps.
        values["kubernetes.taskmanager.service-account"] = kubeflow.service_account
    return {key: str(value) for key, value in values.items()}


def _main_container() -> dict[str, Any]:
    # The operator adds the image, the command and the resources.
    return {
        "name": "flink-main-container",
        "securityContext": {"runAsUser": _FLINK_USER, "runAsGroup": _FLINK_USER},
    }


def _task_manager(config: PipelineConfig) -> dict[str, Any]:
    kubernetes, volume = config.beam.flink.kubernetes, config.kubeflow.volume
    workers = {
        "name": "beam-workers",
        "image": config.cluster.image,
        "command": [
            "python",
            "-m",
            "core.flink.pool",
            # The readiness probe connects to the address of the pod.
            f"[::]:{WORKER_PORT}",
            f"--worker={_WORKER}",
        ],
        "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
        "readinessProbe": {"tcpSocket": {"port": WORKER_PORT}},
        "resources": resources(kubernetes.workers_cpu, kubernetes.workers_memory),
        **volume_mounts(volume.mount if volume else None),
    }
    # Only the Python workers read and write files of a pipeline.
    return pod_template(
        config, FLINK, [_main_container(), workers], **volumes(volume.claim if volume else None)
    )


def _check(config: PipelineConfig) -> None:
    if not config.cluster.image:
        raise missing("cluster.image", "amazon-reviews flink", "HOST/PROJECT/amazon-reviews:TAG")
    flink = config.beam.flink
    for key, line_of_name in _LINE_OF_IMAGE.items():
        image = getattr(flink.kubernetes, key)
        line = line_of_name.search(image)
        if line and "v{}_{}".format(*line.groups()) != flink.kubernetes.flink_version:
            raise ConfigError(
                f"beam.flink.kubernetes.{key}: {image} is for another line of Flink than "
                f"beam.flink.kubernetes.flink_version, which is {flink.kubernetes.flink_version}; "
                "change one of them"
            )
    memory, least = flink.kubernetes.task_manager_memory, _least_memory(flink.network_memory)
    if mebibytes(memory) < least:
        raise ConfigError(
            f"beam.flink.kubernetes.task_manager_memory: {memory} is too small for "
            f"beam.flink.network_memory {flink.network_memory}; set at least {least}m"
        )


def _least_memory(network: str) -> int:
    """Return the MiB with which a TaskManager starts, by the defaults of Flink.

    Flink reserves 40 percent of its memory for sorting, 256 MiB for itself and 256 MiB for classes,
    and a tenth of the process for the JVM, which is between 192 MiB and 1 GiB.
    """
    used = (mebibytes(network) + 256) / 0.6 + 256
    return math.floor(used + min(max(used / 9, 192), 1024)) + 1
