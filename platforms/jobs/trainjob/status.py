"""The status of a TrainJob and the names of its pods."""

from __future__ import annotations

import json
from typing import Any

from core.errors import InputError
from pipeline.cluster_settings import RUNTIME
from platforms.jobs.jobset.status import POD_LABEL, conditions, expected_pod, pod_index
from platforms.jobs.kubernetes.kind import (
    Condition,
    ExpectedPod,
    JobKind,
    Lookup,
    replica_name,
)
from platforms.jobs.kubernetes.settings import KubernetesJobSettings
from platforms.jobs.trainjob import manifest
from trainer_module.cluster.tf_config import CLUSTER_VARIABLE, task_of
from trainer_module.settings import TrainingJob


class TrainJob(JobKind):
    """A TrainJob. Kubeflow Trainer v2 creates a JobSet of the same name for it."""

    name = "trainjob"
    title = "TrainJob"
    group, version, plural = manifest.API_GROUP, manifest.API_VERSION, "trainjobs"
    container = manifest.NODE
    pod_label = POD_LABEL
    controller = "Kubeflow Trainer 2.2 or newer"

    def missing(self, client: Lookup, settings: KubernetesJobSettings) -> str:
        reason = super().missing(client, settings)
        if reason:
            return reason
        try:
            if client.has_cluster_object("clustertrainingruntimes", RUNTIME):
                return ""
        except InputError as error:
            return str(error)
        return f"no {manifest.RUNTIME_KIND} {RUNTIME}"

    def remedy(self, message: str) -> str:
        if "runtime" not in message.lower():
            return ""
        return "; an administrator applies kubeflow/training.yaml once, see docs/how-to/kubeflow.md"

    def make_manifest(
        self, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        return manifest.make_manifest(job, job_file, settings)

    def conditions(self, job: dict[str, Any]) -> list[Condition]:
        return conditions(job, "Complete")

    def accepted(self, job: dict[str, Any]) -> bool:
        status = job.get("status", {})
        return bool(status.get("jobsStatus") or status.get("conditions"))

    def expected_pods(self, job: dict[str, Any]) -> list[ExpectedPod]:
        return [
            expected_pod(_replica(job, number), job["metadata"]["name"], manifest.NODE, number)
            for number in range(job["spec"]["trainer"]["numNodes"])
        ]

    def event_owners(self, job: dict[str, Any]) -> list[tuple[str, str]]:
        return [*super().event_owners(job), ("JobSet", job["metadata"]["name"])]

    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        index = pod_index(pod)
        return _replica(job, index) if index else pod["metadata"]["name"]

    def chief_of(self, job: dict[str, Any]) -> str:
        return _replica(job, 0)


def _replica(job: dict[str, Any], number: int | str) -> str:
    """Return the replica that runs in a node of the TrainJob."""
    env = {each["name"]: each.get("value", "") for each in job["spec"]["trainer"]["env"]}
    cluster = json.loads(env[CLUSTER_VARIABLE])
    counts = {task: len(addresses) for task, addresses in cluster.items()}
    return replica_name(*task_of(counts, number))
