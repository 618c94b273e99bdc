"""The Trainer whose step starts a training job and follows it, and its executor."""

from __future__ import annotations

import os
from typing import Any

from tfx import types
from tfx.dsl.components.base import executor_spec
from tfx.types.standard_component_specs import BASE_MODEL_KEY

from components.baseline import existing_model
from components.trainer import Trainer, TrainerExecutor, with_run_parameters
from platforms.training_jobs.job import (
    CustomJobSettings,
    JobSettings,
    KubernetesJobSettings,
    is_done,
)
from trainer_module.cluster.resources import write_job
from trainer_module.run_fn import make_job


class TrainingJobExecutor(TrainerExecutor):
    """The executor of a step that runs a job for its training. A cancelled step ends its job.

    TFX's own executor for Vertex AI is not used. Its replicas do not have the exit codes of
    `trainer_module.task`, every replica requires the model that the chief writes, and a cancelled
    or retried step does not cancel its job.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Run the job and return when it has written its model.

        Args:
          input_dict: see TFX's GenericExecutor.
          output_dict: see TFX's GenericExecutor.
          exec_properties: see TFX's GenericExecutor.

        Raises:
          InputError: the cluster refuses the job, or the training rejects a setting.
          Unreachable, ApiError: Kubernetes or Vertex AI does not respond.
          JobFailed, JobAborted: the training failed, or exceeded a limit.
          RuntimeError: the job succeeded, but this step cannot read its model.
          pydantic.ValidationError: another version of the code compiled the pipeline.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        fn_args = self._GetFnArgs(
            existing_model(input_dict, BASE_MODEL_KEY),
            output_dict,
            with_run_parameters(input_dict, exec_properties),
        )
        job = make_job(fn_args)
        # The imports of the clients take seconds, and a compilation does not use them.
        if KubernetesJobSettings.VARIABLE in os.environ:
            from platforms.training_jobs import kubernetes

            given = os.environ[KubernetesJobSettings.VARIABLE]
            pods = KubernetesJobSettings.model_validate_json(given)
            kubernetes.train(job, write_job(job), pods)
        else:
            from platforms.training_jobs import custom_job

            given = os.environ.get(CustomJobSettings.VARIABLE, "{}")
            replicas = CustomJobSettings.model_validate_json(given)
            custom_job.train(job, write_job(job), replicas)
        if not is_done(job):
            raise RuntimeError(
                f"The training job succeeded, but there is no model in {job.serving_model_dir}; "
                "check that its replicas have access to the same folders as this step"
            )


class TrainingJobTrainer(Trainer):
    """A Trainer whose step starts a training job and follows it.

    Args:
      job: the settings of the job, for the platform that runs it.
      **arguments: those of `components.trainer.Trainer`.

    Attributes:
      environment: environment variable -> value, with the settings of the job. The compiler sets
        the variables in the container of the step.
    """

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(TrainingJobExecutor)

    def __init__(self, job: JobSettings, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.environment = {job.VARIABLE: job.model_dump_json()}
