"""TFJobTrainer: the Trainer whose replicas run in a TFJob."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import executor_spec

from components.trainer.component import Trainer
from platforms.jobs.tfjob.executor import TFJobExecutor
from platforms.jobs.tfjob.settings import TFJOB_KEY, TFJobSettings


class TFJobTrainer(Trainer):
    """A Trainer whose step starts a TFJob and follows it."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(TFJobExecutor)

    def __init__(self, job: TFJobSettings, custom_config: dict[str, Any], **arguments: Any) -> None:
        """Construct the component.

        Args:
          job: the settings of the TFJob.
          custom_config, arguments: those of Trainer.
        """
        super().__init__(custom_config={**custom_config, TFJOB_KEY: job.model_dump()}, **arguments)
