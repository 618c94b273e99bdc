"""What the jobs of all platforms share: name, replicas, command, limits, and a clean end."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.errors import UserError
from trainer_module.cluster.resources import has_peers
from trainer_module.cluster.tf_config import CHIEF, PS, WORKER
from trainer_module.settings import Training, TrainingJob

_COMMAND = ("python", "-m", "trainer_module.task")


class JobFailed(UserError):
    """A training that failed or exceeded a limit."""


class JobAborted(JobFailed):
    """A training that exceeded a limit; its job still exists."""


@dataclass(frozen=True)
class JobLimits:
    """The limits of a job, and the functions that observe its training.

    Attributes:
      timeout_seconds: timeout of the job from now on, including its time in a queue.
      poll_seconds: seconds between two requests for the state of the job.
      is_done: returns whether the result of the training exists.
      progress: returns a text that changes with the progress of the training.
      refused_seconds: timeout of replicas that Kubernetes refuses for a permanent reason, such as a
        missing service account. A temporary reason, such as a quota, has no timeout of its own.
    """

    timeout_seconds: float
    poll_seconds: float
    is_done: Callable[[], bool]
    progress: Callable[[], str] = str
    refused_seconds: float = 600.0

    def timeout_message(self, label: str) -> str:
        """Return the message of the JobAborted for a job that exceeds its timeout."""
        return (
            f"{label} did not end within {self.timeout_seconds / 3600:g} hours "
            "(cluster.training_timeout_hours); run again to continue from the last checkpoint"
        )


@dataclass(frozen=True)
class ReplicaGroup:
    """Equal replicas: their task type in TF_CONFIG, their number, and the GPUs of each."""

    task: str
    count: int
    gpus: int


def replica_groups(training: Training, gpus: int) -> list[ReplicaGroup]:
    """Return the groups of replicas of a training, the chief first.

    Only replicas that compute gradients get GPUs. With `multi_worker_mirrored` the chief is one of
    the workers. With `parameter_server` it only coordinates, and the servers only store variables.
    """
    if training.strategy == "parameter_server":
        return [
            ReplicaGroup(CHIEF, 1, 0),
            ReplicaGroup(WORKER, training.workers, gpus),
            ReplicaGroup(PS, training.parameter_servers, 0),
        ]
    if has_peers(training):
        return [ReplicaGroup(CHIEF, 1, gpus), ReplicaGroup(WORKER, training.workers - 1, gpus)]
    return [ReplicaGroup(WORKER, 1, gpus)]


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

    def terminate(number: int, frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, terminate) if in_main_thread else None
    try:
        yield
    except (SystemExit, KeyboardInterrupt, JobAborted):
        end()
        raise
    finally:
        if in_main_thread:
            signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
