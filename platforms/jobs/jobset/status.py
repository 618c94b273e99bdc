"""The status of a JobSet and the names of its pods."""

from __future__ import annotations

from typing import Any

from platforms.jobs.jobset import manifest
from platforms.jobs.kubernetes.kind import (
    SUCCEEDED,
    Condition,
    ExpectedPod,
    JobKind,
    replica_name,
    true_conditions,
)
from platforms.jobs.kubernetes.settings import KubernetesJobSettings
from trainer_module.settings import TrainingJob

POD_LABEL = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"


class JobSet(JobKind):
    """A JobSet, which gives each pod a stable host name; TF_CONFIG is in its manifest."""

    name = "jobset"
    title = "JobSet"
    group, version, plural = manifest.API_GROUP, manifest.API_VERSION, "jobsets"
    container = manifest.CONTAINER
    pod_label = POD_LABEL
    controller = "the JobSet controller"

    def make_manifest(
        self, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        return manifest.make_manifest(job, job_file, settings)

    def conditions(self, job: dict[str, Any]) -> list[Condition]:
        return conditions(job, "Completed")

    def accepted(self, job: dict[str, Any]) -> bool:
        status = job.get("status", {})
        return bool(status.get("replicatedJobsStatus") or status.get("conditions"))

    def expected_pods(self, job: dict[str, Any]) -> list[ExpectedPod]:
        return [
            expected_pod(
                replica_name(each["name"], index), job["metadata"]["name"], each["name"], index
            )
            for each in job["spec"]["replicatedJobs"]
            for index in range(each["template"]["spec"]["parallelism"])
        ]

    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        labels = pod["metadata"].get("labels", {})
        return replica_name(labels.get(REPLICATED_JOB_LABEL, ""), pod_index(pod))

    def chief_of(self, job: dict[str, Any]) -> str:
        return replica_name(job["spec"]["replicatedJobs"][0]["name"], 0)


def conditions(job: dict[str, Any], success: str) -> list[Condition]:
    """Return the true conditions of an object; `success` is the type with which it succeeds."""
    return [
        Condition(SUCCEEDED if each["type"] == success else each["type"], each.get("message", ""))
        for each in true_conditions(job)
    ]


def pod_index(pod: dict[str, Any]) -> str:
    """Return the index of a pod in its Job."""
    return str(pod["metadata"].get("annotations", {}).get(manifest.INDEX_ANNOTATION, ""))


def expected_pod(replica: str, job_set: str, replicated_job: str, index: int) -> ExpectedPod:
    """Return a pod of a replicated job. The Job of the pod adds a random suffix to its name."""
    job = f"{job_set}-{replicated_job}-0"
    return ExpectedPod(replica, f"{job}-{index}", whole=False, owner=("Job", job))
