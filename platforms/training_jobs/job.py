"""What the jobs of all platforms share: settings, name, replicas, progress, and a clean end."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from core.errors import UserError
from core.processes import signals_to
from core.settings import Section
from pipeline.cluster_settings import JobKindName
from serving.versions import is_complete
from trainer_module.cluster.tf_config import CHIEF, PS, WORKER
from trainer_module.settings import Training, TrainingJob

_COMMAND = ("python", "-m", "trainer_module.task")


class JobSettings(Section):
    """The settings of a job on any platform, which the pipeline adds to `custom_config`."""

    KEY: ClassVar[str]
    """The key of these settings in `custom_config`."""

    image: str
    service_account: str | None = None
    # Of each replica that computes gradients.
    gpus: int = 0
    timeout_seconds: float
    poll_seconds: float


class KubernetesJobSettings(JobSettings):
    """The pods of a training on Kubernetes, from `kubeflow` and `cluster` in the settings."""

    KEY = "kubernetes_job"

    kind: JobKindName = "auto"
    queue: str | None = None
    namespace: str
    # Of each pod.
    cpu: float | None = None
    memory: str | None = None
    gpu_type: str | None = None
    pod: dict[str, Any] = {}
    volume_claim: str | None = None
    volume_mount: str | None = None
    poll_seconds: float = 10.0


class CustomJobSettings(JobSettings):
    """The replicas of a training on Vertex AI, from `vertex` and `cluster` in the settings."""

    KEY = "custom_job"

    project: str
    region: str
    display_name: str
    machine_type: str
    gpu_type: str = "NVIDIA_TESLA_T4"
    network: str | None = None
    poll_seconds: float = 20.0

    @property
    def parent(self) -> str:
        return f"projects/{self.project}/locations/{self.region}"


class JobFailed(UserError):
    """A training that failed or exceeded a limit."""


class JobAborted(JobFailed):
    """A training that exceeded a limit; its job still exists."""


def exceeded_timeout(label: str, settings: JobSettings) -> JobAborted:
    return JobAborted(
        f"{label} did not end within {settings.timeout_seconds / 3600:g} hours "
        "(cluster.training_timeout_hours); run again to continue from the last checkpoint"
    )


def is_done(job: TrainingJob) -> bool:
    """Return whether the model of a training is complete: a killed export leaves a part of it."""
    return is_complete(job.serving_model_dir)


def last_checkpoint(job: TrainingJob) -> str:
    """Return the name of the last checkpoint of a training; empty if none can be read."""
    from trainer_module.loop.checkpoints import READ_ERRORS, CheckpointError, latest_checkpoint

    try:
        return latest_checkpoint(job.checkpoint_dir) or ""
    except (CheckpointError, *READ_ERRORS):
        return ""


@dataclass(frozen=True)
class ReplicaGroup:
    """Equal replicas: their task type in TF_CONFIG, their number, and the GPUs of each."""

    task: str
    count: int
    gpus: int


def replica_groups(training: Training, gpus: int) -> list[ReplicaGroup]:
    """Return the groups of replicas of a training with several processes, the chief first.

    Only replicas that compute gradients get GPUs. With `multi_worker_mirrored` the chief is one of
    the workers. With `parameter_server` it only coordinates, and the servers only store variables.
    """
    if training.strategy == "parameter_server":
        return [
            ReplicaGroup(CHIEF, 1, 0),
            ReplicaGroup(WORKER, training.workers, gpus),
            ReplicaGroup(PS, training.parameter_servers, 0),
        ]
    return [ReplicaGroup(CHIEF, 1, gpus), ReplicaGroup(WORKER, training.workers - 1, gpus)]


def command(job_file: str) -> list[str]:
    """Return the command of each replica; the file contains the TrainingJob."""
    return [*_COMMAND, job_file]


def job_name(job: TrainingJob) -> str:
    """Return the name of a training's job, which every attempt of one execution shares.

    The name is a DNS-1035 label of 31 characters. The controllers append the replica to it for the
    names of the pods.
    """
    identity = f"{os.path.basename(job.checkpoint_dir)}\0{job.serving_model_dir}"
    return f"amazon-reviews-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


@contextlib.contextmanager
def job_ends_with_step(end: Callable[[], None]) -> Iterator[None]:
    """Call `end` after SIGTERM in the main thread, after SIGINT and after JobAborted.

    SIGTERM raises SystemExit. A second SIGTERM does not interrupt the clean-up after the first one.
    """

    def terminate(number: signal.Signals) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    with signals_to(terminate, signal.SIGTERM):
        try:
            yield
        except (SystemExit, KeyboardInterrupt, JobAborted):
            end()
            raise
