"""A training as a TFJob (kubeflow.org/v1) of the Kubeflow training operator v1."""

from __future__ import annotations

import math
from typing import Any

from platforms.training_jobs.kind import (
    Condition,
    ExpectedPod,
    JobKind,
    replica_name,
    true_conditions,
)
from platforms.training_jobs.pod_template import (
    MOST_RESTARTS,
    SECONDS_KEPT,
    job_metadata,
    pod_template,
    replicas_of,
)
from platforms.training_jobs.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import CHIEF, PS, WORKER
from trainer_module.settings import TrainingJob

TYPE_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"
_TYPES = {CHIEF: "Chief", WORKER: "Worker", PS: "PS"}


class TFJob(JobKind):
    """A TFJob (kubeflow.org/v1) of the Kubeflow training operator v1, which sets TF_CONFIG."""

    name = "tfjob"
    title = "TFJob"
    group, version, plural = "kubeflow.org", "v1", "tfjobs"
    # The operator sets TF_CONFIG in the container of this name, whose exit code counts.
    container = "tensorflow"
    pod_label = "training.kubeflow.org/job-name"
    controller = "the Kubeflow training operator v1"

    def make_manifest(
        self, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.title,
            "metadata": job_metadata(job, settings),
            "spec": {
                "runPolicy": {
                    # Failed pods are kept, with their logs.
                    "cleanPodPolicy": "Running",
                    # With 0 the operator would not restart a preempted pod.
                    "backoffLimit": MOST_RESTARTS,
                    "ttlSecondsAfterFinished": SECONDS_KEPT,
                    "activeDeadlineSeconds": math.ceil(settings.timeout_seconds),
                },
                "tfReplicaSpecs": {
                    _TYPES[group.task]: {
                        "replicas": group.count,
                        # The operator restarts a pod unless its exit code is in `PERMANENT`.
                        "restartPolicy": "ExitCode",
                        "template": pod_template(self.container, job_file, settings, group.gpus),
                    }
                    for group in replicas_of(job.training, settings.gpus)
                },
            },
        }

    def conditions(self, job: dict[str, Any]) -> list[Condition]:
        return [
            Condition(each["type"], str(each.get("message", ""))) for each in true_conditions(job)
        ]

    def fails_after_loss(self, end: Condition) -> bool:
        # Version 1.9 counts a pod that is being deleted as failed, and then fails the TFJob: after
        # an eviction, a preemption or the drain of a node.
        return "replica(s) failed" in end.message

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
