"""ReviewTransform: TFX's Transform with an executor of our own, which writes the same artifacts."""

from __future__ import annotations

from typing import Any

import tfx.components
from tfx.dsl.components.base import executor_spec
from tfx.proto import transform_pb2
from tfx.types import BaseChannel

from components.transform.executor import Executor


class ReviewTransform(tfx.components.Transform):
    """Examples and a schema -> `transform_graph` and `transformed_examples`."""

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)

    def __init__(
        self,
        examples: BaseChannel,
        schema: BaseChannel,
        preprocessing_fn: str,
        splits_config: transform_pb2.SplitsConfig,
        custom_config: dict[str, Any],
    ):
        """Construct the component.

        Args:
          examples: raw Examples.
          schema: their schema.
          preprocessing_fn: dotted path of the function.
          splits_config: the splits that are analyzed, and those that are transformed.
          custom_config: the function's second argument.
        """
        super().__init__(
            examples=examples,
            schema=schema,
            preprocessing_fn=preprocessing_fn,
            splits_config=splits_config,
            custom_config=custom_config,
            # StatisticsGen and DataGate have checked the data already.
            disable_statistics=True,
            disable_analyzer_cache=True,
        )
