"""CustomJobTrainer: the Trainer whose replicas run in a CustomJob of Vertex AI."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import executor_spec

from components.trainer.component import Trainer
from platforms.jobs.custom_job.executor import CustomJobExecutor
from platforms.jobs.custom_job.settings import CUSTOM_JOB_KEY, CustomJobSettings


class CustomJobTrainer(Trainer):
    """A Trainer whose step starts a CustomJob and follows it."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(CustomJobExecutor)

    def __init__(
        self, job: CustomJobSettings, custom_config: dict[str, Any], **arguments: Any
    ) -> None:
        """Construct the component.

        Args:
          job: the settings of the CustomJob.
          custom_config, arguments: those of Trainer.
        """
        super().__init__(
            custom_config={**custom_config, CUSTOM_JOB_KEY: job.model_dump()}, **arguments
        )
