"""Executor of Trainer on Kubernetes: the pods of a TFJob train, and the step follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfx.dsl.io import fileio

from platforms.jobs.remote_executor import RemoteExecutor
from platforms.jobs.tfjob import run as tfjob_run
from platforms.jobs.tfjob.client import TFJobClient, connect
from platforms.jobs.tfjob.follow import Terms
from platforms.jobs.tfjob.manifest import make_manifest
from platforms.jobs.tfjob.settings import TFJOB_KEY, TFJobSettings
from trainer_module.distribute.processes import write_job
from trainer_module.settings import TrainingJob


class TFJobExecutor(RemoteExecutor):
    """Runs a TFJob for the training; `custom_config` has its settings under TFJOB_KEY.

    The TFJob is deleted when the step is cancelled.
    """

    NO_MODEL = (
        "The TFJob succeeded, but there is no model in {}: check that its pods have access to the "
        "same folders as this step"
    )

    def _train(self, job: TrainingJob, custom_config: Mapping[str, Any]) -> None:
        settings = TFJobSettings(**custom_config[TFJOB_KEY])
        client = TFJobClient(connect(), settings.namespace)
        terms = Terms(
            timeout_seconds=settings.timeout_seconds,
            refused_seconds=settings.refused_seconds,
            poll_seconds=settings.poll_seconds,
            is_done=lambda: fileio.exists(job.serving_model_dir),
            progress=lambda: _last_checkpoint(job.checkpoint_dir),
        )
        tfjob_run.run(client, make_manifest(job, write_job(job), settings), terms)


def _last_checkpoint(folder: str) -> str:
    """Return the name of the last checkpoint in a folder; empty if there is none readable."""
    import tensorflow as tf

    try:
        return tf.train.latest_checkpoint(folder) or ""
    except tf.errors.OpError:
        return ""
