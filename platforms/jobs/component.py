"""JobTrainer: a Trainer whose step starts a training job of a platform and follows it."""

from __future__ import annotations

from typing import Any

from components.trainer import Trainer
from core.settings import Section


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
