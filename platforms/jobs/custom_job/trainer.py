"""The Trainer on Vertex AI: the replicas of a CustomJob train, and the step follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base import executor_spec
from tfx.dsl.io import fileio

from platforms.jobs.custom_job.settings import CUSTOM_JOB_KEY, CustomJobSettings
from platforms.jobs.trainer import JobTrainer, RemoteExecutor
from trainer_module.cluster.resources import write_job
from trainer_module.settings import TrainingJob


class CustomJobExecutor(RemoteExecutor):
    """Runs a CustomJob for the training; `custom_config` has its settings under CUSTOM_JOB_KEY.

    A step that is cancelled cancels its CustomJob. TFX's own executor is not used: its replicas do
    not exit as `trainer_module.task` does, every replica requires the model that the chief writes,
    and a cancelled or retried step does not cancel its job.
    """

    NO_MODEL = "The CustomJob succeeded, but there is no model in {}"

    def _train(self, job: TrainingJob, custom_config: Mapping[str, Any]) -> None:
        settings = CustomJobSettings(**custom_config[CUSTOM_JOB_KEY])
        # The import of the clients takes seconds, and a compilation does not use them.
        from google.cloud.aiplatform_v1.services.job_service import JobServiceClient

        from platforms.google_cloud import api as vertex_api
        from platforms.jobs.custom_job import job as custom_job
        from platforms.jobs.custom_job import run as vertex_run

        vertex_run.run(
            vertex_api.connect(JobServiceClient, settings.region),
            settings.parent,
            custom_job.make_custom_job(job, write_job(job), settings),
            timeout_seconds=settings.timeout_seconds,
            poll_seconds=settings.poll_seconds,
            is_done=lambda: fileio.exists(job.serving_model_dir),
        )


class CustomJobTrainer(JobTrainer):
    """A Trainer whose step starts a CustomJob, with `CustomJobSettings`, and follows it."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(CustomJobExecutor)
    JOB_KEY = CUSTOM_JOB_KEY
