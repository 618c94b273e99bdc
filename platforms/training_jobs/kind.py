"""The interface of the kinds of jobs: the manifest and the status of the object of a training."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar

from platforms.training_jobs.settings import KubernetesJobSettings
from trainer_module.cluster.tf_config import CHIEF
from trainer_module.settings import TrainingJob

SUCCEEDED, FAILED = "Succeeded", "Failed"
"""The types of the conditions with which a job ends, in the result of `JobKind.conditions`."""


@dataclass(frozen=True)
class Condition:
    """A condition in the status of a job that is true.

    Attributes:
      type: SUCCEEDED, FAILED, or another type that the controller of the kind defines.
      message: the message of the controller.
    """

    type: str
    message: str


@dataclass(frozen=True)
class ExpectedPod:
    """A pod that a job requires.

    Attributes:
      replica: the replica that runs in it, such as `worker 1`.
      prefix: the name of the pod, or its start.
      whole: True if `prefix` is the whole name.
      owner: kind and name of the object whose events contain the reason if the pod is refused.
    """

    replica: str
    prefix: str
    whole: bool
    owner: tuple[str, str]

    def is_in(self, message: str) -> bool:
        """Return whether a message quotes the name of this pod."""
        return f'"{self.prefix}"' in message or (not self.whole and f'"{self.prefix}-' in message)


class JobKind(abc.ABC):
    """One kind of job. A subclass makes the manifest and interprets the status and the pods.

    Attributes:
      name: the value of `kubeflow.training_job`.
      title: the kind of the object, such as `TFJob`.
      group, version, plural: API group, version and resource name of the object.
      container: name of the container that trains, whose log and exit code count.
      pod_label: key of the label of each pod whose value is the name of the job.
      controller: the program that runs jobs of this kind.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    group: ClassVar[str]
    version: ClassVar[str]
    plural: ClassVar[str]
    container: ClassVar[str]
    pod_label: ClassVar[str]
    controller: ClassVar[str]

    @property
    def permissions(self) -> str:
        """The permissions of a step that runs jobs of this kind."""
        return (
            "the service account of the step requires a Role with the verbs create, get and delete "
            f"on {self.plural} ({self.group}), list on pods and events, and get on pods/log"
        )

    def remedy(self, message: str) -> str:
        """Return a text to append to the API server's message about a refused job; may be empty."""
        return ""

    @abc.abstractmethod
    def make_manifest(
        self, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> dict[str, Any]:
        """Return the object to create for a training.

        Args:
          job: the training; its strategy determines the replicas.
          job_file: path of `job` as JSON, which every pod reads.
          settings: the settings of the pods.
        """

    @abc.abstractmethod
    def conditions(self, job: dict[str, Any]) -> list[Condition]:
        """Return the conditions of a job that are true, the latest last."""

    @abc.abstractmethod
    def accepted(self, job: dict[str, Any]) -> bool:
        """Return whether the controller has written a status of the job."""

    @abc.abstractmethod
    def expected_pods(self, job: dict[str, Any]) -> list[ExpectedPod]:
        """Return the pods that a job requires."""

    def event_owners(self, job: dict[str, Any]) -> list[tuple[str, str]]:
        """Return kind and name of each object whose events explain missing pods."""
        own = (self.title, job["metadata"]["name"])
        return list(dict.fromkeys([own, *(pod.owner for pod in self.expected_pods(job))]))

    @abc.abstractmethod
    def replica_of(self, pod: dict[str, Any], job: dict[str, Any]) -> str:
        """Return the replica that runs in a pod of the API, such as `chief` or `worker 1`."""

    @abc.abstractmethod
    def chief_of(self, job: dict[str, Any]) -> str:
        """Return the replica that writes the model."""

    def end_of(self, job: dict[str, Any]) -> Condition | None:
        """Return the condition with which a job ended; None: it has not ended."""
        for condition in self.conditions(job):
            if condition.type in (SUCCEEDED, FAILED):
                return condition
        return None

    def fails_after_loss(self, end: Condition) -> bool:
        """Return whether a job that failed may only have lost a replica."""
        return False

    def suspended(self, job: dict[str, Any]) -> bool:
        """Return whether a queue holds the job, or somebody has suspended it."""
        current = self.conditions(job)
        return bool(current) and current[-1].type == "Suspended"


def true_conditions(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the conditions in the status of an object that are true, the latest last."""
    conditions = job.get("status", {}).get("conditions") or []
    current = [condition for condition in conditions if condition["status"] == "True"]
    # Conditions of the same second keep their order.
    return sorted(current, key=lambda condition: condition.get("lastTransitionTime") or "")


def replica_name(task: str, index: int | str) -> str:
    """Return the name of a replica, such as `chief` or `worker 1`."""
    return CHIEF if task == CHIEF else f"{task} {index}"
