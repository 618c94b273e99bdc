"""The status of a TFJob and the names of its pods."""

from __future__ import annotations

from typing import Any

from platforms.jobs.kubernetes.kind import (
    Condition,
    ExpectedPod,
    JobKind,
    replica_name,
    true_conditions,
)
from platforms.jobs.kubernetes.settings import KubernetesJobSettings
from platforms.jobs.tfjob import manifest
from trainer_module.cluster.tf_config import CHIEF, WORKER
from trainer_module.settings import TrainingJob

TYPE_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"


class TFJob(JobKind):
    """A TFJob (kubeflow.org/v1) of the Kubeflow training operator v1, which sets TF_CONFIG."""

    name = "tfjob"
    title = "TFJob"
    group, version, plural = manifest.API_GROUP, manifest.API_VERSION, "tfjobs"
    container = manifest.CONTAINER
    pod_label = "training.kubeflow.org/job-name"
    controller = "the Kubeflow training operator v1"

    def make_manifest(
        self, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        return manifest.make_manifest(job, job_file, settings)

    def conditions(self, job: dict[str, Any]) -> list[Condition]:
        return [
            Condition(each["type"], str(each.get("message", ""))) for each in true_conditions(job)
        ]

    def accepted(self, job: dict[str, Any]) -> bool:
        # The operator writes no condition if the API server refuses a pod or a service.
        return bool(job.get("status", {}).get("conditions"))

    def expected_pods(self, job: dict[str, Any]) -> list[ExpectedPod]:
        name = job["metadata"]["name"]
        return [
            ExpectedPod(
                replica=replica_name(task.lower(), index),
                prefix=f"{name}-{task.lower()}-{index}",
                whole=True,
                owner=(self.title, name),
            )
            for task, spec in job["spec"]["tfReplicaSpecs"].items()
            for index in range(spec["replicas"])
        ]

    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        labels = pod["metadata"].get("labels", {})
        return replica_name(labels.get(TYPE_LABEL, ""), labels.get(INDEX_LABEL, ""))

    def chief_of(self, job: dict[str, Any]) -> str:
        return CHIEF if "Chief" in job["spec"]["tfReplicaSpecs"] else f"{WORKER} 0"
