"""A training as a TrainJob (trainer.kubeflow.org), with the runtime of `kubeflow/training.yaml`."""

from __future__ import annotations

import json
import math
from typing import Any

from pipeline.cluster_settings import RUNTIME
from platforms.training_jobs.job import command, replica_groups
from platforms.training_jobs.job_kind import JobKind, replica_name
from platforms.training_jobs.jobset import POD_LABEL, host_names, pod_index
from platforms.training_jobs.pod_template import pod_fields, resources, volume_mounts
from platforms.training_jobs.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import CLUSTER_VARIABLE, task_of
from trainer_module.settings import TrainingJob

NODE = "node"
"""Name of the replicated job and of its container; the Trainer's webhook requires this name."""


class TrainJob(JobKind):
    """A TrainJob. Kubeflow Trainer v2 creates a JobSet of the same name for it."""

    name = "trainjob"
    title = "TrainJob"
    group, version, plural = "trainer.kubeflow.org", "v1alpha1", "trainjobs"
    container = NODE
    pod_label = POD_LABEL
    success = "Complete"
    controller = "Kubeflow Trainer 2.2 or newer"
    runtime = f"clustertrainingruntimes/{RUNTIME}"

    def _spec(
        self, name: str, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        """Return one group of equal nodes.

        The number of a node determines its task: first the chief, then the workers, then the
        parameter servers.
        """
        groups = replica_groups(job.training, settings.gpus)
        nodes = sum(group.count for group in groups)
        addresses = iter(host_names(name, NODE, nodes))
        cluster = {group.task: [next(addresses) for _ in range(group.count)] for group in groups}
        amounts = resources(settings, settings.gpus)
        return {
            "runtimeRef": {
                "apiGroup": self.group,
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
            "runtimePatches": [_patch(settings)],
        }

    def replicas(self, job: dict[str, Any]) -> list[str]:
        return [_replica(job, number) for number in range(job["spec"]["trainer"]["numNodes"])]

    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        index = pod_index(pod)
        return _replica(job, index) if index else pod["metadata"]["name"]


def _patch(settings: KubernetesJobSettings) -> dict[str, Any]:
    """Return the fields of the pods that differ from those of the runtime."""
    pod, mounts = pod_fields(settings), volume_mounts(settings)
    if mounts:
        pod["containers"] = [{"name": NODE, "volumeMounts": mounts}]
    if not pod["volumes"]:
        del pod["volumes"]
    template = {"spec": {"template": {"spec": pod}}}
    job_set = {"spec": {"replicatedJobs": [{"name": NODE, "template": template}]}}
    return {"manager": "amazon-reviews/training", "trainingRuntimeSpec": {"template": job_set}}


def _replica(job: dict[str, Any], number: int | str) -> str:
    """Return the replica that runs in a node of the TrainJob."""
    env = {each["name"]: each.get("value", "") for each in job["spec"]["trainer"]["env"]}
    cluster = json.loads(env[CLUSTER_VARIABLE])
    counts = {task: len(addresses) for task, addresses in cluster.items()}
    return replica_name(*task_of(counts, number))
