"""What the Trainer's executors have in common whose training runs in a job elsewhere."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.dsl.io import fileio
from tfx.types import standard_component_specs

from components.baseline.pushed import without_missing_model
from components.trainer.executor import Executor, with_run_parameters
from trainer_module.run_fn import make_job
from trainer_module.settings import TrainingJob


class RemoteExecutor(Executor, abc.ABC):
    """Waits for a job that trains, and checks that it left a model."""

    NO_MODEL: str
    """The error of a job that succeeded without a model, with a field for the model's folder."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's GenericExecutor.

        Raises:
          InputError: the cluster is missing, or it or the training refuses a setting.
          RuntimeError: the training failed or took too long; the message is one line.
          SystemExit, KeyboardInterrupt: SIGTERM, SIGINT came; the job is ended.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        fn_args = self._GetFnArgs(
            without_missing_model(input_dict, standard_component_specs.BASE_MODEL_KEY),
            output_dict,
            with_run_parameters(exec_properties),
        )
        job = make_job(fn_args)
        self._train(job, fn_args.custom_config)
        if not fileio.exists(job.serving_model_dir):
            raise RuntimeError(self.NO_MODEL.format(job.serving_model_dir))

    @abc.abstractmethod
    def _train(self, job: TrainingJob, custom_config: Mapping[str, Any]) -> None:
        """Return when the job that trains has succeeded."""
