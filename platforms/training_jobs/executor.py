"""The Trainers whose step starts a training job and follows it, and their executors."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.components.base import executor_spec
from tfx.dsl.io import fileio
from tfx.types import standard_component_specs

from components.baseline import existing_model
from components.trainer import Executor, Trainer, with_run_parameters
from core.settings import Section
from platforms.training_jobs import kubernetes
from platforms.training_jobs.client import JobClient, connect
from platforms.training_jobs.job import JobLimits
from platforms.training_jobs.kinds import supported_kind
from platforms.training_jobs.settings import (
    CUSTOM_JOB_KEY,
    KUBERNETES_JOB_KEY,
    CustomJobSettings,
    KubernetesJobSettings,
)
from trainer_module.cluster.resources import write_job
from trainer_module.run_fn import make_job
from trainer_module.settings import TrainingJob


class TrainingJobExecutor(Executor, abc.ABC):
    """Runs a job for the training. A step that is cancelled ends its job."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's GenericExecutor, and `run` of the modules for the exceptions."""
        self._log_startup(input_dict, output_dict, exec_properties)
        fn_args = self._GetFnArgs(
            existing_model(input_dict, standard_component_specs.BASE_MODEL_KEY),
            output_dict,
            with_run_parameters(exec_properties),
        )
        job = make_job(fn_args)
        self._train(job, fn_args.custom_config)
        if not fileio.exists(job.serving_model_dir):
            raise RuntimeError(
                f"The training job succeeded, but there is no model in {job.serving_model_dir}: "
                "check that its replicas have access to the same folders as this step"
            )

    @abc.abstractmethod
    def _train(self, job: TrainingJob, custom_config: Mapping[str, Any]) -> None:
        """Run the job; return when it has succeeded."""


class KubernetesExecutor(TrainingJobExecutor):
    """Runs a TFJob, TrainJob or JobSet; its settings are in `custom_config`."""

    def _train(self, job: TrainingJob, custom_config: Mapping[str, Any]) -> None:
        settings = KubernetesJobSettings(**custom_config[KUBERNETES_JOB_KEY])
        api = connect()
        kind = supported_kind(api, settings)
        client = JobClient(api, kind, settings.namespace)
        manifest = kind.make_manifest(job, write_job(job), settings)
        kubernetes.run(client, manifest, _limits(job, settings))


class CustomJobExecutor(TrainingJobExecutor):
    """Runs a CustomJob of Vertex AI; its settings are in `custom_config`.

    TFX's own executor is not used: its replicas do not exit as `trainer_module.task` does, every
    replica requires the model that the chief writes, and a cancelled or retried step does not
    cancel its job.
    """

    def _train(self, job: TrainingJob, custom_config: Mapping[str, Any]) -> None:
        settings = CustomJobSettings(**custom_config[CUSTOM_JOB_KEY])
        # The import of the clients takes seconds, and a compilation does not use them.
        from google.cloud.aiplatform_v1.services.job_service import JobServiceClient

        from platforms.google_cloud import api as vertex_api
        from platforms.training_jobs import custom_job

        client = vertex_api.connect(JobServiceClient, settings.region)
        made = custom_job.make_custom_job(job, write_job(job), settings)
        custom_job.run(client, settings.parent, made, _limits(job, settings))


class _TrainingJobTrainer(Trainer):
    """A Trainer whose step starts a job and follows it; JOB_KEY is the key of its settings."""

    JOB_KEY: str

    def __init__(self, job: Section, custom_config: dict[str, Any], **arguments: Any) -> None:
        super().__init__(
            custom_config={**custom_config, self.JOB_KEY: job.model_dump()}, **arguments
        )


class KubernetesTrainer(_TrainingJobTrainer):
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(KubernetesExecutor)
    JOB_KEY = KUBERNETES_JOB_KEY


class CustomJobTrainer(_TrainingJobTrainer):
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(CustomJobExecutor)
    JOB_KEY = CUSTOM_JOB_KEY


def _limits(job: TrainingJob, settings: KubernetesJobSettings | CustomJobSettings) -> JobLimits:
    return JobLimits(
        timeout_seconds=settings.timeout_seconds,
        poll_seconds=settings.poll_seconds,
        is_done=lambda: fileio.exists(job.serving_model_dir),
        progress=lambda: _last_checkpoint(job.checkpoint_dir),
    )


def _last_checkpoint(folder: str) -> str:
    """Return the name of the last checkpoint in a folder; empty if none can be read."""
    from trainer_module.loop.checkpoints import READ_ERRORS, CheckpointError, latest_checkpoint

    try:
        return latest_checkpoint(folder) or ""
    except (CheckpointError, *READ_ERRORS):
        return ""
