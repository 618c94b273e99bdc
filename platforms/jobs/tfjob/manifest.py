"""A training as a TFJob (kubeflow.org/v1): which replicas there are, and what each one runs."""

from __future__ import annotations

import hashlib
import math
import os
from typing import Any

from platforms.jobs.tfjob.settings import TFJobSettings
from trainer_module.distribute.local_cluster import has_peers
from trainer_module.settings import Training, TrainingJob

API_GROUP, API_VERSION, PLURAL = "kubeflow.org", "v1", "tfjobs"
CONTAINER = "tensorflow"
"""The container that the operator gives TF_CONFIG to, and whose exit code it looks at."""
MOST_RESTARTS = 10
"""Of one replica, without a new checkpoint between them. The operator does not count those of
`restartPolicy: ExitCode`."""

_COMMAND = ("python", "-m", "trainer_module.task")
_LABELS = {
    "app.kubernetes.io/name": "amazon-reviews",
    "app.kubernetes.io/component": "trainer",
    "app.kubernetes.io/managed-by": "amazon-reviews",
}
_DEFAULT_GPU = "nvidia.com/gpu"
_VOLUME = "pipeline"
_SECONDS_TO_SAVE = 60
"""Between SIGTERM and SIGKILL, for a checkpoint. A spot node of GKE gives 15 of them."""
_SECONDS_KEPT = 24 * 3600
"""That a finished TFJob and the logs of its pods stay to be looked at."""


def job_name(job: TrainingJob) -> str:
    """The same for each try of one execution, so that a later try finds what an earlier one made.

    A DNS-1035 label of 31 characters: the operator adds the replica to it for its pods' names.
    """
    identity = f"{os.path.basename(job.checkpoint_dir)}\0{job.serving_model_dir}"
    return f"amazon-reviews-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def make_manifest(job: TrainingJob, job_file: str, settings: TFJobSettings) -> dict[str, Any]:
    """The TFJob of a training.

    Args:
      job: what is trained; its strategy says which replicas there are.
      job_file: where `job` is as JSON, for all pods to read.
      settings: where the pods run.
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
                # The failed pods stay, with their logs.
                "cleanPodPolicy": "Running",
                # With 0 the operator takes even the end of a preempted pod for a failure.
                "backoffLimit": MOST_RESTARTS,
                "ttlSecondsAfterFinished": _SECONDS_KEPT,
                "activeDeadlineSeconds": math.ceil(settings.timeout_seconds),
            },
            "tfReplicaSpecs": {
                kind: {
                    "replicas": count,
                    # `trainer_module.task` ends with 1 or 2 for what a restart does not mend. The
                    # operator restarts from 128 on: 143 after SIGTERM, with a checkpoint written,
                    # 138 after the loss of another replica, 137 after a kill.
                    "restartPolicy": "ExitCode",
                    "template": _template(job_file, settings, gpus),
                }
                for kind, count, gpus in _replicas(job.training, settings.gpus)
            },
        },
    }


def _replicas(training: Training, gpus: int) -> list[tuple[str, int, int]]:
    """Type, count and GPUs of each kind of replica.

    GPUs go to those that compute gradients. Under `multi_worker_mirrored` the chief is one of the
    workers; under `parameter_server` it only coordinates, and the servers only keep variables.
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
        # Lines reach the log when they are written, not when a buffer is full.
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
        # With the container's, what the Pod Security Standard `restricted` requires. The user is
        # that of the image: some clusters allow a namespace only user ids of its own.
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
    # Kubeflow's namespaces put a proxy into every pod, which TensorFlow's connections do not pass
    # and which keeps a pod from ending. Istio reads the label, older ones the annotation.
    no_proxy = {"sidecar.istio.io/inject": "false"}
    metadata = {"labels": {**_LABELS, **no_proxy}, "annotations": no_proxy}
    return {"metadata": metadata, "spec": pod}


def _resources(settings: TFJobSettings, gpus: int) -> dict[str, dict[str, str]]:
    """Requests equal to limits: a pod that uses what it asked for is the last to be evicted."""
    amounts: dict[str, str] = {}
    if settings.cpu:
        amounts["cpu"] = f"{math.ceil(settings.cpu * 1000)}m"
    if settings.memory:
        amounts["memory"] = settings.memory
    if gpus:
        amounts[settings.gpu_type or _DEFAULT_GPU] = str(gpus)
    return {"requests": amounts, "limits": dict(amounts)} if amounts else {}
