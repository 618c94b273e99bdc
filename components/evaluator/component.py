"""Evaluator: TFX's, whose accuracy threshold is a parameter of a run."""

from __future__ import annotations

from typing import Any

import tfx.components
from tfx.dsl.components.base import executor_spec
from tfx.orchestration.data_types import RuntimeParameter

from components.evaluator.executor import MIN_ACCURACY_KEY, Executor


class Evaluator(tfx.components.Evaluator):
    """TFX's Evaluator; `min_accuracy` wins over the lower bound in `eval_config`."""

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(self, min_accuracy: float | RuntimeParameter, **arguments: Any):
        """Constructs the component.

        Args:
          min_accuracy: of the whole test split, from 0 to 1, or what a run gives.
          arguments: those of TFX's Evaluator.
        """
        super().__init__(**arguments)
        # TFX's constructor makes its own spec, which does not know it.
        self.spec.exec_properties[MIN_ACCURACY_KEY] = min_accuracy
