"""A training as a TrainJob (trainer.kubeflow.org), with the runtime of `kubeflow/training.yaml`."""

from __future__ import annotations

import json
import math
from typing import Any

from core.errors import InputError
from pipeline.cluster_settings import RUNTIME
from platforms.training_jobs.jobset import (
    POD_LABEL,
    conditions,
    expected_pod,
    host_names,
    pod_index,
)
from platforms.training_jobs.kind import Condition, ExpectedPod, JobKind, replica_name
from platforms.training_jobs.pod_template import (
    command,
    job_metadata,
    placement,
    replicas_of,
    resources,
    volume_mounts,
)
from platforms.training_jobs.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import CLUSTER_VARIABLE, task_of
from trainer_module.settings import TrainingJob

RUNTIME_KIND, RUNTIMES = "ClusterTrainingRuntime", "clustertrainingruntimes"
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


class TrainJob(JobKind):
    """A TrainJob. Kubeflow Trainer v2 creates a JobSet of the same name for it."""

    name = "trainjob"
    title = "TrainJob"
    group, version, plural = "trainer.kubeflow.org", "v1alpha1", "trainjobs"
    container = NODE
    pod_label = POD_LABEL
    controller = "Kubeflow Trainer 2.2 or newer"

    def remedy(self, message: str) -> str:
        if "runtime" not in message.lower():
            return ""
        return "; an administrator applies kubeflow/training.yaml once, see docs/how-to/kubeflow.md"

    def make_manifest(
        self, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        """See `JobKind.make_manifest`.

        A TrainJob has one group of equal nodes. The number of a node determines its task: first the
        chief, then the workers, then the parameter servers.

        Raises:
          InputError: a TrainJob cannot set a field of `kubeflow.training_pod`.
        """
        for name in settings.pod:
            if name not in _PATCHED:
                raise InputError(
                    f"kubeflow.training_pod.{name}: a TrainJob cannot set it; set it in the "
                    "runtime, kubeflow/training.yaml, or change kubeflow.training_job"
                )
        groups = replicas_of(job.training, settings.gpus)
        metadata = job_metadata(job, settings)
        addresses = iter(host_names(metadata["name"], NODE, sum(group.count for group in groups)))
        cluster = {group.task: [next(addresses) for _ in range(group.count)] for group in groups}
        amounts = resources(settings, settings.gpus)
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.title,
            "metadata": metadata,
            "spec": {
                "runtimeRef": {
                    "apiGroup": self.group,
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

    def conditions(self, job: dict[str, Any]) -> list[Condition]:
        return conditions(job, "Complete")

    def accepted(self, job: dict[str, Any]) -> bool:
        status = job.get("status", {})
        return bool(status.get("jobsStatus") or status.get("conditions"))

    def expected_pods(self, job: dict[str, Any]) -> list[ExpectedPod]:
        return [
            expected_pod(_replica(job, number), job["metadata"]["name"], NODE, number)
            for number in range(job["spec"]["trainer"]["numNodes"])
        ]

    def event_owners(self, job: dict[str, Any]) -> list[tuple[str, str]]:
        return [*super().event_owners(job), ("JobSet", job["metadata"]["name"])]

    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        index = pod_index(pod)
        return _replica(job, index) if index else pod["metadata"]["name"]

    def chief_of(self, job: dict[str, Any]) -> str:
        return _replica(job, 0)


def _mounts(settings: KubernetesJobSettings) -> dict[str, Any]:
    mounts = volume_mounts(settings.volume_mount)
    return {"containers": [{"name": NODE, **mounts}]} if mounts else {}


def _patch(pod: dict[str, Any]) -> dict[str, Any]:
    template = {"spec": {"template": {"spec": pod}}}
    return {"template": {"spec": {"replicatedJobs": [{"name": NODE, "template": template}]}}}


def _replica(job: dict[str, Any], number: int | str) -> str:
    """Return the replica that runs in a node of the TrainJob."""
    env = {each["name"]: each.get("value", "") for each in job["spec"]["trainer"]["env"]}
    cluster = json.loads(env[CLUSTER_VARIABLE])
    counts = {task: len(addresses) for task, addresses in cluster.items()}
    return replica_name(*task_of(counts, number))
