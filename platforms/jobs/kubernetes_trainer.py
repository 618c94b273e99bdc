"""The Trainer on Kubernetes: the pods of a job train, and the step follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base import executor_spec
from tfx.dsl.io import fileio

from platforms.jobs.choice import choose_kind
from platforms.jobs.kubernetes import run as job_run
from platforms.jobs.kubernetes.client import JobClient, connect
from platforms.jobs.kubernetes.follow import Terms
from platforms.jobs.kubernetes.settings import KUBERNETES_JOB_KEY, KubernetesJobSettings
from platforms.jobs.trainer import JobTrainer, RemoteExecutor
from trainer_module.cluster.resources import write_job
from trainer_module.settings import TrainingJob


class KubernetesExecutor(RemoteExecutor):
    """Runs a job for the training; `custom_config` has its settings under KUBERNETES_JOB_KEY.

    A step that is cancelled deletes its job.
    """

    NO_MODEL = (
        "The training job succeeded, but there is no model in {}: check that its pods have access "
        "to the same folders as this step"
    )

    def _train(self, job: TrainingJob, custom_config: Mapping[str, Any]) -> None:
        settings = KubernetesJobSettings(**custom_config[KUBERNETES_JOB_KEY])
        api = connect()
        kind = choose_kind(api, settings)
        client = JobClient(api, kind, settings.namespace)
        terms = Terms(
            timeout_seconds=settings.timeout_seconds,
            refused_seconds=settings.refused_seconds,
            poll_seconds=settings.poll_seconds,
            is_done=lambda: fileio.exists(job.serving_model_dir),
            progress=lambda: _last_checkpoint(job.checkpoint_dir),
        )
        job_run.run(client, kind.make_manifest(job, write_job(job), settings), terms)


class KubernetesTrainer(JobTrainer):
    """A Trainer whose step starts a job, with `KubernetesJobSettings`, and follows it."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(KubernetesExecutor)
    JOB_KEY = KUBERNETES_JOB_KEY


def _last_checkpoint(folder: str) -> str:
    """Return the name of the last checkpoint in a folder; empty if none can be read."""
    from trainer_module.loop.checkpoints import READ_ERRORS, CheckpointError, latest_checkpoint

    try:
        return latest_checkpoint(folder) or ""
    except (CheckpointError, *READ_ERRORS):
        return ""
