"""A Trainer whose step starts a training job of a platform and follows it, and its executor."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.io import fileio
from tfx.types import standard_component_specs

from components.baseline import existing_model
from components.trainer import Executor, Trainer, with_run_parameters
from core.settings import Section
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
