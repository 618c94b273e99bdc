"""The interface of the kinds of jobs: the manifest and the status of the object of a training."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, NamedTuple

from platforms.training_jobs.job import job_name
from platforms.training_jobs.pod_template import LABELS
from platforms.training_jobs.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import CHIEF
from trainer_module.settings import TrainingJob

SUCCEEDED, FAILED = "Succeeded", "Failed"
"""The types of the conditions with which a job ends, in the result of `JobKind.conditions`."""


class Condition(NamedTuple):
    """A condition in the status of a job that is true: SUCCEEDED, FAILED, or of the controller."""

    type: str
    message: str


class JobKind(abc.ABC):
    """One kind of job. A subclass makes the manifest and interprets the pods.

    Attributes:
      name: the value of `kubeflow.training_job`.
      title: the kind of the object, such as `TFJob`.
      group, version, plural: API group, version and resource name of the object.
      container: name of the container that trains, whose log and exit code count.
      pod_label: key of the label of each pod whose value is the name of the job.
      success: type of the condition with which a job succeeds.
      controller: the program that runs jobs of this kind.
      runtime: resource and name of the cluster-scoped object that the kind requires; may be empty.
      loss: part of the message of a job that failed, but may only have lost a replica.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    group: ClassVar[str]
    version: ClassVar[str]
    plural: ClassVar[str]
    container: ClassVar[str]
    pod_label: ClassVar[str]
    success: ClassVar[str]
    controller: ClassVar[str]
    runtime: ClassVar[str] = ""
    loss: ClassVar[str | None] = None

    def make_manifest(
        self, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        """Return the object to create for a training; every pod reads `job_file`."""
        name = job_name(job)
        queue = {"kueue.x-k8s.io/queue-name": settings.queue} if settings.queue else {}
        labels = {**LABELS, **queue}
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.title,
            "metadata": {"name": name, "namespace": settings.namespace, "labels": labels},
            "spec": self._spec(name, job, job_file, settings),
        }

    @abc.abstractmethod
    def _spec(
        self, name: str, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]: ...

    @abc.abstractmethod
    def replicas(self, job: dict[str, Any]) -> list[str]:
        """Return the replicas of a job, such as `chief` or `worker 1`.

        The first one writes the model.
        """

    @abc.abstractmethod
    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        """Return the replica that runs in a pod of the API."""

    def conditions(self, job: dict[str, Any]) -> list[Condition]:
        """Return the conditions of a job that are true, the latest last."""
        found = job.get("status", {}).get("conditions") or []
        current = [each for each in found if each["status"] == "True"]
        # Conditions of the same second keep their order.
        current.sort(key=lambda each: each.get("lastTransitionTime") or "")
        return [
            Condition(
                SUCCEEDED if each["type"] == self.success else each["type"],
                str(each.get("message", "")),
            )
            for each in current
        ]

    def end_of(self, job: dict[str, Any]) -> Condition | None:
        """Return the condition with which a job ended; None: it has not ended."""
        ends = [each for each in self.conditions(job) if each.type in (SUCCEEDED, FAILED)]
        return ends[0] if ends else None


def replica_name(task: str, index: int | str) -> str:
    """Return the name of a replica, such as `chief` or `worker 1`."""
    return CHIEF if task == CHIEF else f"{task} {index}"
