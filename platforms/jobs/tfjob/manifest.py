"""A training as a TFJob (kubeflow.org/v1)."""

from __future__ import annotations

import math
from typing import Any

from platforms.jobs.kubernetes.pod_template import (
    MOST_RESTARTS,
    SECONDS_KEPT,
    job_metadata,
    pod_template,
    replicas_of,
)
from platforms.jobs.kubernetes.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import CHIEF, PS, WORKER
from trainer_module.settings import TrainingJob

API_GROUP, API_VERSION = "kubeflow.org", "v1"
CONTAINER = "tensorflow"
"""Name of the container that gets TF_CONFIG from the operator, and whose exit code counts."""

_TYPES = {CHIEF: "Chief", WORKER: "Worker", PS: "PS"}


def make_manifest(
    job: TrainingJob, job_file: str, settings: KubernetesJobSettings
) -> dict[str, Any]:
    """Return the TFJob of a training; see `JobKind.make_manifest`."""
    return {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": "TFJob",
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
                    # The operator restarts a pod unless its exit code is in `restarts.PERMANENT`.
                    "restartPolicy": "ExitCode",
                    "template": pod_template(CONTAINER, job_file, settings, group.gpus),
                }
                for group in replicas_of(job.training, settings.gpus)
            },
        },
    }
