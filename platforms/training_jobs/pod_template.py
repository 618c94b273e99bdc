"""What the jobs of all kinds share: their name, their groups of replicas, and their pods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.cluster_settings import TEMPORARY_FOLDER
from platforms.training_jobs.settings import KubernetesJobSettings
from platforms.training_jobs.step import job_name
from trainer_module.cluster.resources import has_peers
from trainer_module.cluster.tf_config import CHIEF, PS, WORKER
from trainer_module.settings import Training, TrainingJob

MOST_RESTARTS = 10
"""Limit of the restarts of one replica without a new checkpoint. The controllers do not count the
restarts of a replica that was killed."""
PERMANENT = range(1, 128)
"""The exit codes with which a replica fails its job. After any greater code it is restarted.

This is the rule of the training operator for a TFJob (`restartPolicy: ExitCode`), and no setting of
a TFJob changes it. The manifests of the other kinds contain these codes.

`trainer_module.task` ends with 1 or 2 if a restart does not help. Codes that a restart can help are
143 after SIGTERM and a checkpoint, 138 after the loss of another replica, and 137 after SIGKILL.
"""
SECONDS_KEPT = 24 * 3600
"""Seconds after which Kubernetes deletes a finished job and its pods, with their logs."""
GRACE_SECONDS = 60
"""Seconds between SIGTERM and SIGKILL of a pod, in which it writes a checkpoint."""
PORT = 2222
"""The port of TensorFlow in each pod; the training operator uses the same one."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
LABELS = {
    "app.kubernetes.io/name": "amazon-reviews",
    "app.kubernetes.io/component": "trainer",
    "app.kubernetes.io/managed-by": "amazon-reviews",
}
"""The labels of each job and pod, by which the NetworkPolicy selects the pods."""

_COMMAND = ("python", "-m", "trainer_module.task")
_DEFAULT_GPU = "nvidia.com/gpu"
_VOLUME = "pipeline"
_SCRATCH = "scratch"


@dataclass(frozen=True)
class Replicas:
    """A group of equal replicas.

    Attributes:
      task: their task type in TF_CONFIG: `chief`, `worker` or `ps`.
      count: number of replicas.
      gpus: number of GPUs of each replica.
    """

    task: str
    count: int
    gpus: int


def replicas_of(training: Training, gpus: int) -> list[Replicas]:
    """Return the groups of replicas of a training, the chief first.

    Only replicas that compute gradients get GPUs. With `multi_worker_mirrored` the chief is one of
    the workers. With `parameter_server` it only coordinates, and the servers only store variables.
    """
    if training.strategy == "parameter_server":
        return [
            Replicas(CHIEF, 1, 0),
            Replicas(WORKER, training.workers, gpus),
            Replicas(PS, training.parameter_servers, 0),
        ]
    if has_peers(training):
        return [Replicas(CHIEF, 1, gpus), Replicas(WORKER, training.workers - 1, gpus)]
    return [Replicas(WORKER, 1, gpus)]


def job_metadata(job: TrainingJob, settings: KubernetesJobSettings) -> dict[str, Any]:
    """Return the metadata of the object that runs a training."""
    queue = {QUEUE_LABEL: settings.queue} if settings.queue else {}
    return {
        "name": job_name(job),
        "namespace": settings.namespace,
        "labels": {**LABELS, **queue},
    }


def command(job_file: str) -> list[str]:
    """Return the command of each pod."""
    return [*_COMMAND, job_file]


def pod_metadata(labels: Mapping[str, str] = LABELS) -> dict[str, Any]:
    """Return the metadata of each pod."""
    # Namespaces of Kubeflow add a proxy to every pod. It blocks TensorFlow's connections and keeps
    # the pod alive after the training. Istio reads the label; older versions read the annotation.
    no_proxy = {"sidecar.istio.io/inject": "false"}
    return {"labels": {**labels, **no_proxy}, "annotations": no_proxy}


def bare_pod(container: str, image: str | None) -> dict[str, Any]:
    """Return the spec of a pod with one container, without its command and the user's settings.

    The root file system is read-only. The training writes to `/tmp`, and to the user's volume.
    """
    return {
        "containers": [
            {
                "name": container,
                **({"image": image} if image else {}),
                # Python writes each line to the log at once, without a buffer.
                "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
                "securityContext": {**container_security(), "readOnlyRootFilesystem": True},
                "volumeMounts": [{"name": _SCRATCH, "mountPath": TEMPORARY_FOLDER}],
            }
        ],
        # No user id is set, because some clusters assign ids to each namespace.
        "securityContext": pod_security(),
        "volumes": [{"name": _SCRATCH, "emptyDir": {}}],
    }


def pod_security() -> dict[str, Any]:
    """Return the security context of a pod that satisfies the Pod Security Standard `restricted`.

    Its containers also require `container_security`.
    """
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def container_security() -> dict[str, Any]:
    """Return the security context of the containers of such a pod."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pod_template(
    container: str, job_file: str, settings: KubernetesJobSettings, gpus: int
) -> dict[str, Any]:
    """Return the template of the pods of a group of replicas.

    Args:
      container: the name of the container that trains.
      job_file: the argument of the command.
      settings: the settings of the pods.
      gpus: number of GPUs of each pod.
    """
    pod, placed = bare_pod(container, settings.image), placement(settings)
    [trains] = pod["containers"]
    trains |= {"command": command(job_file), "resources": resources(settings, gpus)}
    trains["volumeMounts"] += volume_mounts(settings.volume_mount).get("volumeMounts", [])
    pod["volumes"] += placed.pop("volumes", [])
    return {"metadata": pod_metadata(), "spec": {**pod, **placed}}


def placement(settings: KubernetesJobSettings) -> dict[str, Any]:
    """Return the fields of a pod's spec for its account, its volumes, and those of the user."""
    fields: dict[str, Any] = {"terminationGracePeriodSeconds": GRACE_SECONDS}
    if settings.service_account:
        fields["serviceAccountName"] = settings.service_account
    own = volumes(settings.volume_claim).get("volumes", [])
    all_volumes = [*own, *settings.pod.get("volumes", [])]
    return {**fields, **settings.pod, **({"volumes": all_volumes} if all_volumes else {})}


def volumes(claim: str | None) -> dict[str, Any]:
    """Return the field of a pod's spec for a PersistentVolumeClaim; empty without a claim."""
    if not claim:
        return {}
    return {"volumes": [{"name": _VOLUME, "persistentVolumeClaim": {"claimName": claim}}]}


def volume_mounts(mount: str | None) -> dict[str, Any]:
    """Return the field of a container that mounts the volume at a path; empty without a path."""
    return {"volumeMounts": [{"name": _VOLUME, "mountPath": mount}]} if mount else {}


def resources(settings: KubernetesJobSettings, gpus: int) -> dict[str, dict[str, str]]:
    """Return equal requests and limits, so that the pod is among the last to be evicted."""
    amounts: dict[str, str] = {}
    if settings.cpu:
        amounts["cpu"] = f"{math.ceil(settings.cpu * 1000)}m"
    if settings.memory:
        amounts["memory"] = settings.memory
    if gpus:
        amounts[settings.gpu_type or _DEFAULT_GPU] = str(gpus)
    return {"requests": amounts, "limits": dict(amounts)} if amounts else {}
