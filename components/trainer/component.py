"""Trainer: TFX's, whose epochs and strategy are parameters of a run."""

from __future__ import annotations

from typing import Any

import tfx.components
from tfx.dsl.components.base import executor_spec
from tfx.orchestration.data_types import RuntimeParameter

from components.trainer.executor import EPOCHS_KEY, STRATEGY_KEY, Executor


class Trainer(tfx.components.Trainer):
    """TFX's Trainer; `epochs` and `strategy` win over those in `custom_config`."""

    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        epochs: int | RuntimeParameter,
        strategy: str | RuntimeParameter,
        **arguments: Any,
    ):
        """Constructs the component.

        Args:
          epochs, strategy: `training.epochs` and `training.strategy`, or what a run gives.
          arguments: those of TFX's Trainer; `custom_config` has a section `training`.
        """
        super().__init__(**arguments)
        # TFX's constructor makes its own spec, which knows neither.
        self.spec.exec_properties.update({EPOCHS_KEY: epochs, STRATEGY_KEY: strategy})
