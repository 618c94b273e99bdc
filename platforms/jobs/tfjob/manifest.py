"""A training as a TFJob (kubeflow.org/v1): its replicas, and the pod of each replica."""

from __future__ import annotations

import hashlib
import math
import os
from typing import Any

from platforms.jobs.tfjob.settings import TFJobSettings
from trainer_module.distribute.processes import has_peers
from trainer_module.settings import Training, TrainingJob

API_GROUP, API_VERSION, PLURAL = "kubeflow.org", "v1", "tfjobs"
CONTAINER = "tensorflow"
"""Name of the container that gets TF_CONFIG from the operator, and whose exit code counts."""
MOST_RESTARTS = 10
"""Limit of the restarts of one replica without a new checkpoint; with `restartPolicy: ExitCode` the
operator does not count restarts itself."""

_COMMAND = ("python", "-m", "trainer_module.task")
_LABELS = {
    "app.kubernetes.io/name": "amazon-reviews",
    "app.kubernetes.io/component": "trainer",
    "app.kubernetes.io/managed-by": "amazon-reviews",
}
_DEFAULT_GPU = "nvidia.com/gpu"
_VOLUME = "pipeline"
_SECONDS_TO_SAVE = 60
"""Seconds between SIGTERM and SIGKILL, for a checkpoint; on a spot node of GKE they are 15."""
_SECONDS_KEPT = 24 * 3600
"""Seconds after which Kubernetes deletes a finished TFJob and its pods, with their logs."""


def job_name(job: TrainingJob) -> str:
    """Return the name of a training's TFJob, which every attempt of one execution shares.

    The name is a DNS-1035 label of 31 characters. The operator appends the replica to it for the
    names of the pods.
    """
    identity = f"{os.path.basename(job.checkpoint_dir)}\0{job.serving_model_dir}"
    return f"amazon-reviews-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def make_manifest(job: TrainingJob, job_file: str, settings: TFJobSettings) -> dict[str, Any]:
    """Return the TFJob of a training.

    Args:
      job: the training; its strategy determines the replicas.
      job_file: path of `job` as JSON, which every pod reads.
      settings: the settings of the pods.
    """
    return {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": "TFJob",
        "metadata": {
            "name": job_name(job),
            "namespace": settings.namespace,
            "labels": _LABELS,
        },
        "spec": {
            "runPolicy": {
                # Failed pods are kept, with their logs.
                "cleanPodPolicy": "Running",
                # With 0 the operator would not restart a preempted pod.
                "backoffLimit": MOST_RESTARTS,
                "ttlSecondsAfterFinished": _SECONDS_KEPT,
                "activeDeadlineSeconds": math.ceil(settings.timeout_seconds),
            },
            "tfReplicaSpecs": {
                kind: {
                    "replicas": count,
                    # The exit code of `trainer_module.task` is 1 or 2 if a restart does not help.
                    # The operator restarts a pod with a code of 128 or more: 143 after SIGTERM and
                    # a checkpoint, 138 after the loss of another replica, 137 after SIGKILL.
                    "restartPolicy": "ExitCode",
                    "template": _template(job_file, settings, gpus),
                }
                for kind, count, gpus in _replicas(job.training, settings.gpus)
            },
        },
    }


def _replicas(training: Training, gpus: int) -> list[tuple[str, int, int]]:
    """Return the type of each group of replicas, their number, and the GPUs of each replica.

    Only replicas that compute gradients get GPUs. With `multi_worker_mirrored` the chief is one of
    the workers. With `parameter_server` it only coordinates, and the servers only store variables.
    """
    if training.strategy == "parameter_server":
        return [
            ("Chief", 1, 0),
            ("Worker", training.workers, gpus),
            ("PS", training.parameter_servers, 0),
        ]
    if has_peers(training):
        return [("Chief", 1, gpus), ("Worker", training.workers - 1, gpus)]
    return [("Worker", 1, gpus)]


def _template(job_file: str, settings: TFJobSettings, gpus: int) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": settings.image,
        "command": [*_COMMAND, job_file],
        # Python writes each line to the log at once, without a buffer.
        "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
        "resources": _resources(settings, gpus),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    pod: dict[str, Any] = {
        "containers": [container],
        "terminationGracePeriodSeconds": _SECONDS_TO_SAVE,
        # The security contexts of the pod and of the container satisfy the Pod Security Standard
        # `restricted`. They set no user id, because some clusters allow only ids of the namespace.
        "securityContext": {
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if settings.service_account:
        pod["serviceAccountName"] = settings.service_account
    if settings.node_selector:
        pod["nodeSelector"] = settings.node_selector
    if settings.tolerations:
        pod["tolerations"] = settings.tolerations
    if settings.volume_claim:
        claim = {"claimName": settings.volume_claim}
        pod["volumes"] = [{"name": _VOLUME, "persistentVolumeClaim": claim}]
        container["volumeMounts"] = [{"name": _VOLUME, "mountPath": settings.volume_mount}]
    # Namespaces of Kubeflow add a proxy to every pod. It blocks TensorFlow's connections and keeps
    # the pod alive after the training. Istio reads the label; older versions read the annotation.
    no_proxy = {"sidecar.istio.io/inject": "false"}
    metadata = {"labels": {**_LABELS, **no_proxy}, "annotations": no_proxy}
    return {"metadata": metadata, "spec": pod}


def _resources(settings: TFJobSettings, gpus: int) -> dict[str, dict[str, str]]:
    """Return equal requests and limits, so that the pod is among the last to be evicted."""
    amounts: dict[str, str] = {}
    if settings.cpu:
        amounts["cpu"] = f"{math.ceil(settings.cpu * 1000)}m"
    if settings.memory:
        amounts["memory"] = settings.memory
    if gpus:
        amounts[settings.gpu_type or _DEFAULT_GPU] = str(gpus)
    return {"requests": amounts, "limits": dict(amounts)} if amounts else {}
