"""StatisticsGen: TFX's component with a limit on how much it looks at."""

from __future__ import annotations

import tensorflow_data_validation as tfdv
from tfx import types
from tfx.components import StatisticsGen as TfxStatisticsGen
from tfx.dsl.components.base import executor_spec
from tfx.types import BaseChannel, standard_artifacts, standard_component_specs
from tfx.types.component_spec import ExecutionParameter

from components.statistics import executor


class StatisticsGenSpec(types.ComponentSpec):
    """TFX's interface, and `max_examples`."""

    PARAMETERS = {
        **standard_component_specs.StatisticsGenSpec.PARAMETERS,
        executor.MAX_EXAMPLES_KEY: ExecutionParameter(type=int, optional=True),
    }
    INPUTS = standard_component_specs.StatisticsGenSpec.INPUTS
    OUTPUTS = standard_component_specs.StatisticsGenSpec.OUTPUTS


class StatisticsGen(TfxStatisticsGen):
    """Examples and their schema -> `statistics` of each split."""

    SPEC_CLASS = StatisticsGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: BaseChannel,
        schema: BaseChannel,
        stats_options: tfdv.StatsOptions,
        max_examples: int | None,
    ):
        """Constructs the component.

        Args:
          examples: what statistics are made of.
          schema: what the Examples are to be; it says which features are categories.
          stats_options: its `feature_allowlist` is what is looked at.
          max_examples: of each split about so many are looked at, from all of its files; None: all
            of them, by TFX's own executor and Beam.
        """
        spec = StatisticsGenSpec(
            examples=examples,
            schema=schema,
            stats_options_json=stats_options.to_json(),
            exclude_splits="null",
            sample_rate_by_split="null",
            max_examples=max_examples,
            statistics=types.Channel(type=standard_artifacts.ExampleStatistics),
        )
        # The parent builds a spec of its own, without `max_examples`.
        super(TfxStatisticsGen, self).__init__(spec=spec)
