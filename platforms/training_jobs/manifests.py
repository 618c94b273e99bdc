"""The manifests of training jobs: their pods, and the specs of a TFJob, a TrainJob and a JobSet."""

from __future__ import annotations

import json
import math

from pipeline.cluster_settings import RUNTIME
from platforms.kubernetes_objects import Object
from platforms.training_jobs.job import KubernetesJobSettings, command, job_name, replica_groups
from trainer_module.cluster.tf_config import (
    CHIEF,
    CLUSTER_VARIABLE,
    INDEX_VARIABLE,
    PS,
    VARIABLE,
    WORKER,
)
from trainer_module.settings import TrainingJob

TENSORFLOW = "tensorflow"
"""Name of the container of a TFJob and of a JobSet. The operator of TFJobs sets TF_CONFIG in it."""
NODE = "node"
"""Name of the replicated job of a TrainJob and of its container; the webhook requires it."""
VOLUME = "pipeline"
"""Name of the volume of `kubeflow.volume` in a pod."""
SCRATCH = "scratch"
"""Name of the volume for temporary files in a pod."""
MAX_RESTARTS = 10
"""Limit of the restarts of one replica without a new checkpoint. The step enforces the limit,
because the controllers do not count the restarts of a replica that was killed."""
PERMANENT = range(1, 128)
"""The exit codes with which a replica fails its job. After a greater code the replica is restarted.

This is the rule of the training operator for a TFJob (`restartPolicy: ExitCode`). The manifests of
the other kinds contain these codes.
"""
PORT = 2222
"""The port of TensorFlow in each pod; the training operator uses the same one."""
GRACE_SECONDS = 60
"""Seconds from SIGTERM to SIGKILL of a pod, in which the pod writes a checkpoint."""
LABELS = {
    "app.kubernetes.io/name": "amazon-reviews",
    "app.kubernetes.io/component": "trainer",
    "app.kubernetes.io/managed-by": "amazon-reviews",
}
"""The labels of each job and pod, by which the NetworkPolicy selects the pods."""

_SECONDS_KEPT = 24 * 3600
"""Seconds after which Kubernetes deletes a finished job and its pods, with their logs."""


def pod_metadata() -> Object:
    """Return the labels and annotations of the pods."""
    # Namespaces of Kubeflow add a proxy to every pod. The proxy blocks TensorFlow's connections and
    # keeps the pod alive after the training. Istio reads the label; older versions read the
    # annotation.
    no_proxy = {"sidecar.istio.io/inject": "false"}
    return {"labels": {**LABELS, **no_proxy}, "annotations": no_proxy}


def bare_pod(container: str, image: str | None) -> Object:
    """Return the spec of a pod with one container that has no command and no user settings.

    The pod satisfies the Pod Security Standard `restricted`, and its root file system is read-only.

    Args:
      container: the name of the container.
      image: the image of the container; None: a TrainJob sets the image.
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
                "volumeMounts": [{"name": SCRATCH, "mountPath": "/tmp"}],
            }
        ],
        "securityContext": _security_context(),
        "volumes": [{"name": SCRATCH, "emptyDir": {}}],
    }


def _security_context() -> Object:
    """Return the fields of a pod's securityContext that its containers share."""
    # No user id is set, because some clusters assign ids to each namespace.
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def _pod_template(job_file: str, settings: KubernetesJobSettings, gpus: int) -> Object:
    """Return the template of the pods of a group of replicas."""
    pod = bare_pod(TENSORFLOW, settings.image)
    fields = _pod_fields(settings)
    [container] = pod["containers"]
    container |= {"command": command(job_file), "resources": _resources(settings, gpus)}
    container["volumeMounts"] += _volume_mounts(settings)
    volumes = [*pod["volumes"], *fields["volumes"]]
    return {"metadata": pod_metadata(), "spec": {**pod, **fields, "volumes": volumes}}


def _pod_fields(settings: KubernetesJobSettings) -> Object:
    """Return the fields of a pod's spec for its account and volumes, and the user's own fields.

    The user's `volumes` and the fields of the user's `securityContext` are added to those of
    `bare_pod`. Every other field of the user replaces the default.
    """
    fields: Object = {"terminationGracePeriodSeconds": GRACE_SECONDS}
    if settings.service_account:
        fields["serviceAccountName"] = settings.service_account
    volumes = []
    if settings.volume_claim:
        claim = {"claimName": settings.volume_claim}
        volumes.append({"name": VOLUME, "persistentVolumeClaim": claim})
    volumes += settings.pod.get("volumes") or []
    fields |= settings.pod
    if "securityContext" in settings.pod:
        fields["securityContext"] = _security_context() | (settings.pod["securityContext"] or {})
    return {**fields, "volumes": volumes}


def _volume_mounts(settings: KubernetesJobSettings) -> list[dict[str, str]]:
    mount = settings.volume_mount
    return [{"name": VOLUME, "mountPath": mount}] if mount else []


def _resources(settings: KubernetesJobSettings, gpus: int) -> dict[str, dict[str, str]]:
    """Return equal requests and limits, with which a pod is one of the last to be evicted."""
    amounts = {}
    if settings.cpu:
        amounts["cpu"] = f"{settings.cpu:g}"
    if settings.memory:
        amounts["memory"] = settings.memory
    if gpus:
        amounts[settings.gpu_type or "nvidia.com/gpu"] = str(gpus)
    return {"requests": amounts, "limits": dict(amounts)} if amounts else {}


def tfjob_spec(job: TrainingJob, job_file: str, settings: KubernetesJobSettings) -> Object:
    """Return the spec of a TFJob. The operator sets TF_CONFIG in its pods.

    Args:
      job: the training.
      job_file: the path of `job` in a file, which every pod reads.
      settings: the pods and the timeout.
    """
    types = {CHIEF: "Chief", WORKER: "Worker", PS: "PS"}
    return {
        "runPolicy": {
            # Failed pods are kept, with their logs.
            "cleanPodPolicy": "Running",
            # With 0 the operator would not restart a preempted pod.
            "backoffLimit": MAX_RESTARTS,
            "ttlSecondsAfterFinished": _SECONDS_KEPT,
            "activeDeadlineSeconds": math.ceil(settings.timeout_seconds),
        },
        "tfReplicaSpecs": {
            types[group.task]: {
                "replicas": group.count,
                # The operator restarts a pod unless its exit code is in `PERMANENT`.
                "restartPolicy": "ExitCode",
                "template": _pod_template(job_file, settings, group.gpus),
            }
            for group in replica_groups(job.training, settings.gpus)
        },
    }


def trainjob_spec(job: TrainingJob, job_file: str, settings: KubernetesJobSettings) -> Object:
    """Return the spec of a TrainJob, from which Kubeflow Trainer creates a JobSet of equal nodes.

    The runtime in `kubeflow/training.yaml` has the other fields of the JobSet. The index of a node
    determines its task: first the chief, then the workers, then the parameter servers.

    Args:
      job: the training.
      job_file: the path of `job` in a file, which every pod reads.
      settings: the pods and the timeout.
    """
    name = job_name(job)
    groups = replica_groups(job.training, settings.gpus)
    nodes = sum(group.count for group in groups)
    addresses = iter(_host_names(name, NODE, nodes))
    cluster = {group.task: [next(addresses) for _ in range(group.count)] for group in groups}
    amounts = _resources(settings, settings.gpus)
    pod = _pod_fields(settings)
    mounts = _volume_mounts(settings)
    if mounts:
        pod["containers"] = [{"name": NODE, "volumeMounts": mounts}]
    if not pod["volumes"]:
        del pod["volumes"]
    template = {"spec": {"template": {"spec": pod}}}
    job_set = {"spec": {"replicatedJobs": [{"name": NODE, "template": template}]}}
    patch = {"manager": "amazon-reviews/training", "trainingRuntimeSpec": {"template": job_set}}
    return {
        "runtimeRef": {
            "apiGroup": "trainer.kubeflow.org",
            "kind": "ClusterTrainingRuntime",
            "name": RUNTIME,
        },
        "activeDeadlineSeconds": math.ceil(settings.timeout_seconds),
        "trainer": {
            "image": settings.image,
            "command": command(job_file),
            "numNodes": nodes,
            "env": [{"name": CLUSTER_VARIABLE, "value": json.dumps(cluster)}],
            **({"resourcesPerNode": amounts} if amounts else {}),
        },
        "runtimePatches": [patch],
    }


def jobset_spec(job: TrainingJob, job_file: str, settings: KubernetesJobSettings) -> Object:
    """Return the spec of a JobSet: a replicated job for each task type of TF_CONFIG.

    Args:
      job: the training.
      job_file: the path of `job` in a file, which every pod reads.
      settings: the pods and the timeout.
    """
    name = job_name(job)
    groups = replica_groups(job.training, settings.gpus)
    cluster = {group.task: _host_names(name, group.task, group.count) for group in groups}
    replicated_jobs = []
    for group in groups:
        template = _pod_template(job_file, settings, group.gpus)
        [container] = template["spec"]["containers"]
        # Kubernetes replaces $(POD_INDEX) by the value of that variable, which must come first.
        task = {"type": group.task, "index": f"$({INDEX_VARIABLE})"}
        config = json.dumps({"cluster": cluster, "task": task})
        container["env"] += [index_variable(), {"name": VARIABLE, "value": config}]
        template["spec"]["restartPolicy"] = "Never"
        spec = {
            **job_policies(TENSORFLOW),
            "parallelism": group.count,
            "completions": group.count,
            "activeDeadlineSeconds": math.ceil(settings.timeout_seconds),
            "template": template,
        }
        replicated_jobs.append({"name": group.task, "replicas": 1, "template": {"spec": spec}})
    return {**job_set_policies(chief=groups[0].task), "replicatedJobs": replicated_jobs}


def job_set_policies(chief: str) -> Object:
    """Return the fields of a JobSet's spec for its network, its success and its failure.

    Args:
      chief: the name of the replicated job whose success is the success of the JobSet.
    """
    return {
        # A headless service with the name of the JobSet. TensorFlow connects to its peers while
        # they start.
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        # Parameter servers, and workers beside them, never end by themselves.
        "successPolicy": {"operator": "All", "targetReplicatedJobs": [chief]},
        "failurePolicy": {
            "maxRestarts": MAX_RESTARTS,
            "rules": [
                {
                    "name": "permanent",
                    "action": "FailJobSet",
                    "onJobFailureReasons": ["PodFailurePolicy", "DeadlineExceeded"],
                }
            ],
        },
        "ttlSecondsAfterFinished": _SECONDS_KEPT,
    }


def job_policies(container: str) -> Object:
    """Return the fields of a Job's spec that decide which pods are replaced.

    An exit code in `PERMANENT` fails the Job. After any other code, or an eviction, the
    pod is replaced. The new pod has the same host name. The other pods continue.

    Args:
      container: the name of the container whose exit code decides.
    """
    codes = {"containerName": container, "values": [*PERMANENT]}
    return {
        "completionMode": "Indexed",
        # The limit applies only to failures without an exit code, because pods that a rule ignores
        # do not count.
        "backoffLimit": MAX_RESTARTS,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                # Preempted, evicted, or on a node that is drained.
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                {"action": "FailJob", "onExitCodes": {**codes, "operator": "In"}},
                {"action": "Ignore", "onExitCodes": {**codes, "operator": "NotIn"}},
            ]
        },
    }


def index_variable() -> Object:
    """Return the environment variable with the index of a pod in its Job."""
    path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    return {"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _host_names(job_set: str, replicated_job: str, count: int) -> list[str]:
    """Return the address of each pod of a replicated job, which its replacement has too."""
    return [f"{job_set}-{replicated_job}-0-{index}.{job_set}:{PORT}" for index in range(count)]
