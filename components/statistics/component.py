"""SampledStatisticsGen: the statistics of a sample of each split."""

from __future__ import annotations

import tensorflow_data_validation as tfdv
from tfx import types
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.types import BaseChannel, standard_artifacts, standard_component_specs
from tfx.types.component_spec import ExecutionParameter

from components.statistics import executor


class SampledStatisticsGenSpec(types.ComponentSpec):
    """The interface of TFX's StatisticsGen, and `max_examples`."""

    PARAMETERS = {
        **standard_component_specs.StatisticsGenSpec.PARAMETERS,
        executor.MAX_EXAMPLES_KEY: ExecutionParameter(type=int, optional=True),
    }
    INPUTS = standard_component_specs.StatisticsGenSpec.INPUTS
    OUTPUTS = standard_component_specs.StatisticsGenSpec.OUTPUTS


class SampledStatisticsGen(base_beam_component.BaseBeamComponent):
    """Examples and their schema -> `statistics` of each split.

    With `max_examples=None` it runs the executor of TFX's StatisticsGen.
    """

    SPEC_CLASS = SampledStatisticsGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        examples: BaseChannel,
        schema: BaseChannel,
        max_examples: int | None,
    ):
        """Construct the component.

        Args:
          examples: the Examples.
          schema: their schema, which defines the features that are categories.
          max_examples: approximate size of the sample of each split, from all of its files; None:
            all Examples, through Beam.
        """
        spec = SampledStatisticsGenSpec(
            examples=examples,
            schema=schema,
            stats_options_json=tfdv.StatsOptions().to_json(),
            exclude_splits="null",
            sample_rate_by_split="null",
            max_examples=max_examples,
            statistics=types.Channel(type=standard_artifacts.ExampleStatistics),
        )
        super().__init__(spec=spec)
