"""Executor of Trainer on Kubernetes: trains in the pods of a TFJob, and only waits itself."""

from __future__ import annotations

from typing import Any

from tfx import types
from tfx.dsl.io import fileio
from tfx.types import standard_component_specs

from components.baseline.pushed import without_missing_model
from components.trainer import tfjob_run
from components.trainer.executor import Executor, with_run_parameters
from components.trainer.step import write_job
from components.trainer.tfjob_client import TFJobClient, connect
from components.trainer.tfjob_follow import Terms
from components.trainer.tfjob_manifest import make_manifest
from components.trainer.tfjob_settings import TFJOB_KEY, TFJobSettings
from trainer_module.run_fn import make_job


class TFJobExecutor(Executor):
    """Runs a TFJob for the training; `custom_config` has its settings under TFJOB_KEY."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's GenericExecutor.

        Raises:
          InputError: there is no cluster, or it or the training refuses what it was told.
          RuntimeError: the training failed or took too long; the message is one line.
          SystemExit, KeyboardInterrupt: SIGTERM, SIGINT came; the TFJob is deleted.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        fn_args = self._GetFnArgs(
            without_missing_model(input_dict, standard_component_specs.BASE_MODEL_KEY),
            output_dict,
            with_run_parameters(exec_properties),
        )
        settings = TFJobSettings(**fn_args.custom_config[TFJOB_KEY])
        job = make_job(fn_args)
        client = TFJobClient(connect(), settings.namespace)
        terms = Terms(
            timeout_seconds=settings.timeout_seconds,
            refused_seconds=settings.refused_seconds,
            poll_seconds=settings.poll_seconds,
            is_done=lambda: fileio.exists(job.serving_model_dir),
            progress=lambda: _last_checkpoint(job.checkpoint_dir),
        )
        tfjob_run.run(client, make_manifest(job, write_job(job), settings), terms)
        if not fileio.exists(job.serving_model_dir):
            raise RuntimeError(
                f"The TFJob succeeded, but there is no model in {job.serving_model_dir}: do its "
                "pods see the same folders as this step?"
            )


def _last_checkpoint(folder: str) -> str:
    """Name of the last checkpoint in a folder; empty: there is none, or it cannot be read now."""
    import tensorflow as tf

    try:
        return tf.train.latest_checkpoint(folder) or ""
    except tf.errors.OpError:
        return ""
