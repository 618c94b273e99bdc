"""The manifests of the pods of all kinds of jobs."""

from __future__ import annotations

from typing import Any

from platforms.training_jobs.job import command
from platforms.training_jobs.settings import KubernetesJobSettings

MAX_RESTARTS = 10
"""Limit of the restarts of one replica without a new checkpoint. The controllers do not count the
restarts of a replica that was killed."""
PERMANENT = range(1, 128)
"""The exit codes with which a replica fails its job. After any greater code it is restarted.

This is the rule of the training operator for a TFJob (`restartPolicy: ExitCode`). The manifests of
the other kinds contain these codes.
"""
SECONDS_KEPT = 24 * 3600
"""Seconds after which Kubernetes deletes a finished job and its pods, with their logs."""
PORT = 2222
"""The port of TensorFlow in each pod; the training operator uses the same one."""
LABELS = {
    "app.kubernetes.io/name": "amazon-reviews",
    "app.kubernetes.io/component": "trainer",
    "app.kubernetes.io/managed-by": "amazon-reviews",
}
"""The labels of each job and pod, by which the NetworkPolicy selects the pods."""

_GRACE_SECONDS = 60
"""Seconds between SIGTERM and SIGKILL of a pod, in which it writes a checkpoint."""
_VOLUME = "pipeline"
_SCRATCH = "scratch"


def pod_metadata() -> dict[str, Any]:
    """Return the metadata of each pod."""
    # Namespaces of Kubeflow add a proxy to every pod. It blocks TensorFlow's connections and keeps
    # the pod alive after the training. Istio reads the label; older versions read the annotation.
    no_proxy = {"sidecar.istio.io/inject": "false"}
    return {"labels": {**LABELS, **no_proxy}, "annotations": no_proxy}


def bare_pod(container: str, image: str | None) -> dict[str, Any]:
    """Return the spec of a pod with one container, without its command and the user's settings.

    The pod satisfies the Pod Security Standard `restricted`, and its root file system is read-only.
    """
    return {
        "containers": [
            {
                "name": container,
                **({"image": image} if image else {}),
                # Python writes each line to the log at once, without a buffer.
                "env": [{"name": "PYTHONUNBUFFERED", "value": "1"}],
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
                "volumeMounts": [{"name": _SCRATCH, "mountPath": "/tmp"}],
            }
        ],
        # No user id is set, because some clusters assign ids to each namespace.
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [{"name": _SCRATCH, "emptyDir": {}}],
    }


def pod_template(
    container: str, job_file: str, settings: KubernetesJobSettings, gpus: int
) -> dict[str, Any]:
    """Return the template of the pods of a group of replicas."""
    pod, fields = bare_pod(container, settings.image), pod_fields(settings)
    [trains] = pod["containers"]
    trains |= {"command": command(job_file), "resources": resources(settings, gpus)}
    trains["volumeMounts"] += volume_mounts(settings)
    volumes = [*pod["volumes"], *fields["volumes"]]
    return {"metadata": pod_metadata(), "spec": {**pod, **fields, "volumes": volumes}}


def pod_fields(settings: KubernetesJobSettings) -> dict[str, Any]:
    """Return the fields of a pod's spec for its account, its volumes, and those of the user."""
    account = {"serviceAccountName": settings.service_account} if settings.service_account else {}
    claim = {"claimName": settings.volume_claim}
    volumes = [{"name": _VOLUME, "persistentVolumeClaim": claim}] if settings.volume_claim else []
    own = settings.pod.get("volumes") or []
    # The API server refuses anything but a list of volumes in one line.
    volumes += own if isinstance(own, list) else [own]
    fields = {"terminationGracePeriodSeconds": _GRACE_SECONDS, **account, **settings.pod}
    return {**fields, "volumes": volumes}


def volume_mounts(settings: KubernetesJobSettings) -> list[dict[str, str]]:
    """Return the mount of the user's volume in the container that trains."""
    mount = settings.volume_mount
    return [{"name": _VOLUME, "mountPath": mount}] if mount else []


def resources(settings: KubernetesJobSettings, gpus: int) -> dict[str, dict[str, str]]:
    """Return equal requests and limits, so that the pod is among the last to be evicted."""
    amounts = {}
    if settings.cpu:
        amounts["cpu"] = f"{settings.cpu:g}"
    if settings.memory:
        amounts["memory"] = settings.memory
    if gpus:
        amounts[settings.gpu_type or "nvidia.com/gpu"] = str(gpus)
    return {"requests": amounts, "limits": dict(amounts)} if amounts else {}
