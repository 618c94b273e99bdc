"""The common parts of the jobs of all platforms: settings, name, replicas, progress, and end."""

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
from trainer_module.cluster.exits import RUN_AGAIN
from trainer_module.cluster.tf_config import CHIEF, PS, WORKER
from trainer_module.settings import Training, TrainingJob

_COMMAND = ("python", "-m", "trainer_module.task")


class JobSettings(Section):
    """The settings of a job on any platform.

    They are no parameters of the Trainer, because they affect no output: a Trainer whose pods get
    more memory remains a cache hit on Kubeflow. Only the number of GPUs is a parameter too.
    """

    VARIABLE: ClassVar[str]
    """The environment variable of the Trainer's step with these settings, as JSON."""

    image: str
    service_account: str | None = None
    gpus: int = 0
    """GPUs of each replica that computes gradients."""
    timeout_seconds: float
    """Timeout of the training, including its time in a queue."""
    poll_seconds: float
    """Seconds between two requests for the state of the job."""


class KubernetesJobSettings(JobSettings):
    """The pods of a training on Kubernetes, from the sections `kubeflow` and `cluster`."""

    VARIABLE = "AMAZON_REVIEWS_KUBERNETES_JOB"

    kind: JobKindName = "auto"
    """The kind of the job, see `client.supported_kind` for `auto`."""
    queue: str | None = None
    """The queue of Kueue; None: the job starts without a queue."""
    namespace: str
    cpu: float | None = None
    """CPU cores of each pod; None: the cluster decides."""
    memory: str | None = None
    """Memory of each pod, in the form of Kubernetes; None: the cluster decides."""
    gpu_type: str | None = None
    """Resource name of the GPUs; None: `nvidia.com/gpu`."""
    pod: dict[str, Any] = {}
    """Further fields of the spec of each pod, as in the Kubernetes API."""
    volume_claim: str | None = None
    """The PersistentVolumeClaim of the volume; None: there is none."""
    volume_mount: str | None = None
    """The path of the volume in each pod; None: there is none."""
    poll_seconds: float = 10.0


class CustomJobSettings(JobSettings):
    """The replicas of a training on Vertex AI, from the sections `vertex` and `cluster`."""

    VARIABLE = "AMAZON_REVIEWS_CUSTOM_JOB"

    project: str
    region: str
    display_name: str
    machine_type: str
    gpu_type: str = "NVIDIA_TESLA_T4"
    network: str | None = None
    poll_seconds: float = 20.0


class JobFailed(UserError):
    """A training that failed or exceeded a limit."""


class JobAborted(JobFailed):
    """A training that exceeded a limit; its job still exists."""


def exceeded_timeout(label: str, settings: JobSettings) -> JobAborted:
    """Return the error of a training that exceeded its timeout.

    Args:
      label: the job, which is the subject of the message.
      settings: the settings with the timeout.
    """
    return JobAborted(
        f"{label} did not end within {settings.timeout_seconds / 3600:g} hours "
        f"(cluster.training_timeout_hours); {RUN_AGAIN}"
    )


def is_done(job: TrainingJob) -> bool:
    """Return whether the model of a training is complete.

    A killed export leaves an incomplete model.

    Raises:
      OSError: the folder of the model cannot be read.
    """
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
    """A group of equal replicas of a training.

    Attributes:
      task: their task type in TF_CONFIG.
      count: their number.
      gpus: the GPUs of each of them.
    """

    task: str
    count: int
    gpus: int


def replica_groups(training: Training, gpus: int) -> list[ReplicaGroup]:
    """Return the groups of replicas of a training with several processes, the chief first.

    Only replicas that compute gradients have GPUs. With `multi_worker_mirrored` the chief is one of
    the workers. With `parameter_server` the chief only coordinates the workers, and the parameter
    servers only store variables.

    Args:
      training: the strategy and the numbers of processes.
      gpus: the GPUs of each replica that computes gradients.
    """
    if training.strategy == "parameter_server":
        return [
            ReplicaGroup(CHIEF, 1, 0),
            ReplicaGroup(WORKER, training.workers, gpus),
            ReplicaGroup(PS, training.parameter_servers, 0),
        ]
    return [ReplicaGroup(CHIEF, 1, gpus), ReplicaGroup(WORKER, training.workers - 1, gpus)]


def command(job_file: str) -> list[str]:
    """Return the command of each replica.

    Args:
      job_file: the path of a file with the TrainingJob, which the replica can read.
    """
    return [*_COMMAND, job_file]


def job_name(job: TrainingJob) -> str:
    """Return the name of a training's job, which is the same for all attempts of an execution.

    The name is a DNS-1035 label of 31 characters, because the names of pods begin with it.
    """
    identity = f"{os.path.basename(job.checkpoint_dir)}\0{job.serving_model_dir}"
    return f"amazon-reviews-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


@contextlib.contextmanager
def job_ends_with_step(end: Callable[[], None]) -> Iterator[None]:
    """End the job if SIGTERM in the main thread, SIGINT or JobAborted ends this context.

    A second SIGTERM does not interrupt `end`.

    Args:
      end: deletes or cancels the job.

    Raises:
      SystemExit: SIGTERM arrived.
      KeyboardInterrupt: SIGINT arrived.
      JobAborted: the body of the context raised it.
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
