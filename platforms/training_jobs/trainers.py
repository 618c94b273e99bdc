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
from platforms.training_jobs import follow
from platforms.training_jobs.choice import choose_kind
from platforms.training_jobs.client import JobClient, connect
from platforms.training_jobs.settings import (
    CUSTOM_JOB_KEY,
    KUBERNETES_JOB_KEY,
    CustomJobSettings,
    KubernetesJobSettings,
)
from trainer_module.cluster.resources import write_job
from trainer_module.run_fn import make_job
from trainer_module.settings import TrainingJob


class RemoteExecutor(Executor, abc.ABC):
    """Runs a job for the training, and checks that the job wrote a model."""

    NO_MODEL: str
    """Error message for a job that succeeded without a model; {} is the model's folder."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's GenericExecutor.

        Raises:
          InputError: there is no cluster, or the cluster or the training refuses a setting.
          RuntimeError: the training failed or took too long; the message is one line.
          SystemExit, KeyboardInterrupt: after SIGTERM or SIGINT; the job is ended.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        fn_args = self._GetFnArgs(
            existing_model(input_dict, standard_component_specs.BASE_MODEL_KEY),
            output_dict,
            with_run_parameters(exec_properties),
        )
        job = make_job(fn_args)
        self._train(job, fn_args.custom_config)
        if not fileio.exists(job.serving_model_dir):
            raise RuntimeError(self.NO_MODEL.format(job.serving_model_dir))

    @abc.abstractmethod
    def _train(self, job: TrainingJob, custom_config: Mapping[str, Any]) -> None:
        """Run the job; return when it has succeeded."""


class JobTrainer(Trainer):
    """The common constructor of the Trainers that start a job.

    A subclass has an EXECUTOR_SPEC with a `RemoteExecutor`.

    Attributes:
      JOB_KEY: the key in `custom_config` that holds the settings of the job.
    """

    JOB_KEY: str

    def __init__(self, job: Section, custom_config: dict[str, Any], **arguments: Any) -> None:
        """Construct the component.

        Args:
          job: the settings of the job.
          custom_config, arguments: those of Trainer.
        """
        super().__init__(
            custom_config={**custom_config, self.JOB_KEY: job.model_dump()}, **arguments
        )


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
        terms = follow.Terms(
            timeout_seconds=settings.timeout_seconds,
            refused_seconds=settings.refused_seconds,
            poll_seconds=settings.poll_seconds,
            is_done=lambda: fileio.exists(job.serving_model_dir),
            progress=lambda: _last_checkpoint(job.checkpoint_dir),
        )
        follow.run(client, kind.make_manifest(job, write_job(job), settings), terms)


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
        from platforms.training_jobs import custom_job

        custom_job.run(
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
