"""A training as a JobSet (jobset.x-k8s.io): a replicated job for each task type of TF_CONFIG."""

from __future__ import annotations

import json
import math
from typing import Any

from platforms.training_jobs.job import ReplicaGroup, replica_groups
from platforms.training_jobs.job_kind import JobKind, replica_name
from platforms.training_jobs.pod_template import (
    MAX_RESTARTS,
    PERMANENT,
    PORT,
    SECONDS_KEPT,
    pod_template,
)
from platforms.training_jobs.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import INDEX_VARIABLE, VARIABLE
from trainer_module.settings import TrainingJob

CONTAINER = "tensorflow"
INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
POD_LABEL = "jobset.sigs.k8s.io/jobset-name"
REPLICATED_JOB_LABEL = "jobset.sigs.k8s.io/replicatedjob-name"


class JobSet(JobKind):
    """A JobSet, which gives each pod a stable host name; TF_CONFIG is in its manifest."""

    name = "jobset"
    title = "JobSet"
    group, version, plural = "jobset.x-k8s.io", "v1alpha2", "jobsets"
    container = CONTAINER
    pod_label = POD_LABEL
    success = "Completed"
    controller = "the JobSet controller"

    def _spec(
        self, name: str, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        groups = replica_groups(job.training, settings.gpus)
        cluster = {group.task: host_names(name, group.task, group.count) for group in groups}
        return {
            **job_set_policies(chief=groups[0].task),
            "replicatedJobs": [_job(group, cluster, job_file, settings) for group in groups],
        }

    def replicas(self, job: dict[str, Any]) -> list[str]:
        return [
            replica_name(each["name"], index)
            for each in job["spec"]["replicatedJobs"]
            for index in range(each["template"]["spec"]["parallelism"])
        ]

    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        labels = pod["metadata"].get("labels", {})
        return replica_name(labels.get(REPLICATED_JOB_LABEL, ""), pod_index(pod))


def job_set_policies(chief: str) -> dict[str, Any]:
    """Return the fields of a JobSet's spec for its network, its success and its failure.

    The success of the replicated job `chief` is that of the JobSet.
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
        "ttlSecondsAfterFinished": SECONDS_KEPT,
    }


def job_policies(container: str) -> dict[str, Any]:
    """Return the fields of a Job's spec that decide which pods are replaced.

    An exit code in `PERMANENT` fails the Job. After any other code, or an eviction, the
    pod is replaced. The new pod has the same host name. The other pods continue.
    """
    codes = {"containerName": container, "values": [*PERMANENT]}
    return {
        "completionMode": "Indexed",
        # The limit concerns only failures without an exit code: pods that a rule ignores do not
        # count.
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


def index_variable() -> dict[str, Any]:
    """Return the environment variable with the index of a pod in its Job."""
    path = f"metadata.annotations['{INDEX_ANNOTATION}']"
    return {"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def host_names(job_set: str, replicated_job: str, count: int) -> list[str]:
    """Return the address of each pod of a replicated job; its replacement has the same one."""
    return [f"{job_set}-{replicated_job}-0-{index}.{job_set}:{PORT}" for index in range(count)]


def pod_index(pod: dict[str, Any]) -> str:
    return str(pod["metadata"].get("annotations", {}).get(INDEX_ANNOTATION, ""))


def _job(
    group: ReplicaGroup,
    cluster: dict[str, list[str]],
    job_file: str,
    settings: KubernetesJobSettings,
) -> dict[str, Any]:
    template = pod_template(CONTAINER, job_file, settings, group.gpus)
    [container] = template["spec"]["containers"]
    if sum(map(len, cluster.values())) > 1:
        # Kubernetes replaces $(POD_INDEX) by the value of that variable, which must come first.
        task = {"type": group.task, "index": f"$({INDEX_VARIABLE})"}
        config = json.dumps({"cluster": cluster, "task": task})
        container["env"] += [index_variable(), {"name": VARIABLE, "value": config}]
    template["spec"]["restartPolicy"] = "Never"
    spec = {
        **job_policies(CONTAINER),
        "parallelism": group.count,
        "completions": group.count,
        "activeDeadlineSeconds": math.ceil(settings.timeout_seconds),
        "template": template,
    }
    return {"name": group.task, "replicas": 1, "template": {"spec": spec}}
