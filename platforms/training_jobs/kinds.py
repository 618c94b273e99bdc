"""The kinds of jobs on Kubernetes: their objects, and how to read them and their pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from platforms.kubernetes_objects import Object
from platforms.training_jobs import manifests
from platforms.training_jobs.job import KubernetesJobSettings, job_name, replica_groups
from trainer_module.cluster.tf_config import CHIEF
from trainer_module.settings import TrainingJob

FAILED = "Failed"
"""The type of the condition of a failed job, for all kinds of jobs."""
_ENDS = ("Succeeded", "Complete", "Completed", FAILED)
"""The types of the conditions of a TFJob, a TrainJob or a JobSet that has ended."""
_REPLICAS = "amazon-reviews/replicas"
"""The key of a job's annotation with its replicas, such as `chief,worker 0,worker 1`."""


@dataclass(frozen=True)
class JobKind:
    """One kind of job.

    Attributes:
      name: the value of `kubeflow.training_job`.
      title: the kind of the object, such as `TFJob`.
      group: the group of its API.
      version: the version of its API.
      controller: the program that runs jobs of this kind.
      make_spec: returns the spec of the object. It has the arguments of `make_manifest`.
      container: the name of the container that trains. Its log and exit code are those of the pod.
      job_label: the key of a pod's label with the name of the job.
      index_label: the key of a pod's label with the index of the pod.
      task_label: the key of a pod's label with the task type in TF_CONFIG. The index counts the
        pods of one task type. None: the index counts all pods of the job.
      loss: a text in the message of a job that failed, perhaps only because it lost a replica.
        None: the loss of a replica does not fail a job of this kind.
    """

    name: str
    title: str
    group: str
    version: str
    controller: str
    make_spec: Callable[[TrainingJob, str, KubernetesJobSettings], Object]
    container: str
    job_label: str
    index_label: str
    task_label: str | None
    loss: str | None = None

    def make_manifest(
        self, job: TrainingJob, job_file: str, settings: KubernetesJobSettings
    ) -> Object:
        """Return the object to create for a training.

        Args:
          job: the training.
          job_file: the path of `job` in a file, which every pod reads.
          settings: the pods, the queue and the namespace.
        """
        queue = {"kueue.x-k8s.io/queue-name": settings.queue} if settings.queue else {}
        replicas = [
            _replica(group.task, index)
            for group in replica_groups(job.training, settings.gpus)
            for index in range(group.count)
        ]
        return {
            "apiVersion": f"{self.group}/{self.version}",
            "kind": self.title,
            "metadata": {
                "name": job_name(job),
                "namespace": settings.namespace,
                "labels": {**manifests.LABELS, **queue},
                "annotations": {_REPLICAS: ",".join(replicas)},
            },
            "spec": self.make_spec(job, job_file, settings),
        }

    def find_replica(self, pod: Object, job: Object) -> str:
        """Return the replica that runs in a pod; empty if the pod has no replica.

        Args:
          pod: the pod as the API returns it.
          job: the job of the pod, or its manifest.
        """
        labels = pod["metadata"].get("labels", {})
        index = labels.get(self.index_label, "")
        if self.task_label:
            return _replica(labels.get(self.task_label, ""), index)
        return replicas(job)[int(index)] if index else ""


def replicas(job: Object) -> list[str]:
    """Return the replicas of a job, such as `chief` or `worker 1`. The first writes the model.

    Args:
      job: the job as the API returns it, or its manifest.
    """
    return job["metadata"]["annotations"][_REPLICAS].split(",")


def conditions(job: Object) -> list[Object]:
    """Return the true conditions of a job, the latest last. Each has a message.

    Args:
      job: the job as the API returns it.
    """
    found = job.get("status", {}).get("conditions") or []
    # A controller may leave out the message.
    true = [{"message": "no message", **each} for each in found if each["status"] == "True"]
    # Conditions of the same second keep their order.
    return sorted(true, key=lambda each: each.get("lastTransitionTime") or "")


def end_condition(job: Object) -> Object | None:
    """Return the condition with which a job ended; None if the job has not ended.

    Args:
      job: the job as the API returns it.
    """
    return next((each for each in conditions(job) if each["type"] in _ENDS), None)


def _replica(task: str, index: int | str) -> str:
    return CHIEF if task == CHIEF else f"{task} {index}"


_INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
_JOB_SET_LABEL = "jobset.sigs.k8s.io/jobset-name"

TFJOB = JobKind(
    name="tfjob",
    title="TFJob",
    group="kubeflow.org",
    version="v1",
    controller="the Kubeflow training operator v1",
    make_spec=manifests.tfjob_spec,
    container=manifests.TENSORFLOW,
    job_label="training.kubeflow.org/job-name",
    index_label="training.kubeflow.org/replica-index",
    task_label="training.kubeflow.org/replica-type",
    # Version 1.9 counts a pod that is being deleted as failed. So the TFJob fails after an
    # eviction, a preemption or the drain of a node.
    loss="replica(s) failed",
)
TRAINJOB = JobKind(
    name="trainjob",
    title="TrainJob",
    group="trainer.kubeflow.org",
    version="v1alpha1",
    controller="Kubeflow Trainer 2.2 or newer",
    make_spec=manifests.trainjob_spec,
    container=manifests.NODE,
    job_label=_JOB_SET_LABEL,
    index_label=_INDEX_LABEL,
    task_label=None,
)
JOBSET = JobKind(
    name="jobset",
    title="JobSet",
    group="jobset.x-k8s.io",
    version="v1alpha2",
    controller="the JobSet controller",
    make_spec=manifests.jobset_spec,
    container=manifests.TENSORFLOW,
    job_label=_JOB_SET_LABEL,
    index_label=_INDEX_LABEL,
    task_label="jobset.sigs.k8s.io/replicatedjob-name",
)
KINDS = (TFJOB, TRAINJOB, JOBSET)
