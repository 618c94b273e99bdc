"""A training as a TrainJob (trainer.kubeflow.org), with the runtime of `kubeflow/training.yaml`."""

from __future__ import annotations

import json
import math
from typing import Any

from core.errors import InputError
from pipeline.cluster_settings import RUNTIME
from platforms.jobs.jobset.manifest import host_names
from platforms.jobs.kubernetes.pod_template import (
    command,
    job_metadata,
    placement,
    replicas_of,
    resources,
    volume_mounts,
)
from platforms.jobs.kubernetes.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import CLUSTER_VARIABLE
from trainer_module.settings import TrainingJob

API_GROUP, API_VERSION = "trainer.kubeflow.org", "v1alpha1"
RUNTIME_KIND = "ClusterTrainingRuntime"
NODE = "node"
"""Name of the replicated job and of its container; the Trainer's webhook requires this name."""

_MANAGER = "amazon-reviews/training"
_PATCHED = (
    "affinity",
    "imagePullSecrets",
    "initContainers",
    "nodeSelector",
    "schedulingGates",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "volumes",
)
"""The fields of a pod's spec that a TrainJob can set; the API server drops any other field."""


def make_manifest(
    job: TrainingJob, job_file: str, settings: KubernetesJobSettings
) -> dict[str, Any]:
    """Return the TrainJob of a training; see `JobKind.make_manifest`.

    A TrainJob has one group of equal nodes. The number of a node determines its task: first the
    chief, then the workers, then the parameter servers.

    Raises:
      InputError: a TrainJob cannot set a field of `kubeflow.training_pod`.
    """
    for name in settings.pod:
        if name not in _PATCHED:
            raise InputError(
                f"kubeflow.training_pod.{name}: a TrainJob cannot set it; set it in the runtime, "
                "kubeflow/training.yaml, or change kubeflow.training_job"
            )
    groups = replicas_of(job.training, settings.gpus)
    metadata = job_metadata(job, settings)
    addresses = iter(host_names(metadata["name"], NODE, sum(group.count for group in groups)))
    cluster = {group.task: [next(addresses) for _ in range(group.count)] for group in groups}
    amounts = resources(settings, settings.gpus)
    return {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {
            "runtimeRef": {
                "apiGroup": API_GROUP,
                "kind": RUNTIME_KIND,
                "name": RUNTIME,
            },
            "activeDeadlineSeconds": math.ceil(settings.timeout_seconds),
            "trainer": {
                "image": settings.image,
                "command": command(job_file),
                "numNodes": sum(group.count for group in groups),
                "env": [{"name": CLUSTER_VARIABLE, "value": json.dumps(cluster)}],
                **({"resourcesPerNode": amounts} if amounts else {}),
            },
            "runtimePatches": [
                {
                    "manager": _MANAGER,
                    "trainingRuntimeSpec": _patch({**placement(settings), **_mounts(settings)}),
                }
            ],
        },
    }


def _mounts(settings: KubernetesJobSettings) -> dict[str, Any]:
    mounts = volume_mounts(settings.volume_mount)
    return {"containers": [{"name": NODE, **mounts}]} if mounts else {}


def _patch(pod: dict[str, Any]) -> dict[str, Any]:
    template = {"spec": {"template": {"spec": pod}}}
    return {"template": {"spec": {"replicatedJobs": [{"name": NODE, "template": template}]}}}
