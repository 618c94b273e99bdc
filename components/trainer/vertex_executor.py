"""Executor of Trainer on Vertex AI: the replicas of a CustomJob train, and the step waits."""

from __future__ import annotations

from typing import Any

from tfx import types
from tfx.dsl.io import fileio
from tfx.types import standard_component_specs

from components.baseline.pushed import without_missing_model
from components.trainer.executor import Executor, with_run_parameters
from components.trainer.step import write_job
from components.trainer.vertex_settings import CUSTOM_JOB_KEY, CustomJobSettings
from trainer_module.run_fn import make_job


class VertexExecutor(Executor):
    """Runs a CustomJob for the training; `custom_config` has its settings under CUSTOM_JOB_KEY.

    Not TFX's own executor: its replicas do not end as `trainer_module.task` does, all of them
    require the model that the chief writes, and a cancelled or retried step leaves its job alone.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's GenericExecutor.

        Raises:
          InputError: Vertex AI or the training refuses a setting.
          RuntimeError: the training failed or took too long; the message is one line.
          SystemExit, KeyboardInterrupt: SIGTERM, SIGINT came; the CustomJob is cancelled.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        fn_args = self._GetFnArgs(
            without_missing_model(input_dict, standard_component_specs.BASE_MODEL_KEY),
            output_dict,
            with_run_parameters(exec_properties),
        )
        settings = CustomJobSettings(**fn_args.custom_config[CUSTOM_JOB_KEY])
        job = make_job(fn_args)
        # The clients take seconds to import, for which compiling need not wait.
        from google.cloud.aiplatform_v1.services.job_service import JobServiceClient

        from components import vertex_api
        from components.trainer import custom_job, vertex_run

        vertex_run.run(
            vertex_api.connect(JobServiceClient, settings.region),
            settings.parent,
            custom_job.make_custom_job(job, write_job(job), settings),
            timeout_seconds=settings.timeout_seconds,
            poll_seconds=settings.poll_seconds,
            is_done=lambda: fileio.exists(job.serving_model_dir),
        )
        if not fileio.exists(job.serving_model_dir):
            raise RuntimeError(
                f"The CustomJob succeeded, but there is no model in {job.serving_model_dir}"
            )
