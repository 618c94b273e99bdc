"""A training as a TFJob (kubeflow.org/v1) of the Kubeflow training operator v1."""

from __future__ import annotations

import math
from typing import Any

from platforms.training_jobs.job import replica_groups
from platforms.training_jobs.job_kind import JobKind, replica_name
from platforms.training_jobs.pod_template import MAX_RESTARTS, SECONDS_KEPT, pod_template
from platforms.training_jobs.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import CHIEF, PS, WORKER
from trainer_module.settings import TrainingJob

TYPE_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"
_TYPES = {CHIEF: "Chief", WORKER: "Worker", PS: "PS"}


class TFJob(JobKind):
    """A TFJob. The operator sets TF_CONFIG in the container `tensorflow`."""

    name = "tfjob"
    title = "TFJob"
    group, version, plural = "kubeflow.org", "v1", "tfjobs"
    container = "tensorflow"
    pod_label = "training.kubeflow.org/job-name"
    success = "Succeeded"
    controller = "the Kubeflow training operator v1"
    # Version 1.9 counts a pod that is being deleted as failed, and then fails the TFJob: after an
    # eviction, a preemption or the drain of a node.
    loss = "replica(s) failed"

    def _spec(
        self, name: str, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        return {
            "runPolicy": {
                # Failed pods are kept, with their logs.
                "cleanPodPolicy": "Running",
                # With 0 the operator would not restart a preempted pod.
                "backoffLimit": MAX_RESTARTS,
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
                for group in replica_groups(job.training, settings.gpus)
            },
        }

    def replicas(self, job: dict[str, Any]) -> list[str]:
        # The API server sorts the keys: Chief, PS, Worker.
        return [
            replica_name(task.lower(), index)
            for task, spec in job["spec"]["tfReplicaSpecs"].items()
            for index in range(spec["replicas"])
        ]

    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        labels = pod["metadata"].get("labels", {})
        return replica_name(labels.get(TYPE_LABEL, ""), labels.get(INDEX_LABEL, ""))
