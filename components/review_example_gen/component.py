"""ReviewExampleGen: a file-based ExampleGen for review files of several formats."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tfx import types
from tfx.components.example_gen.component import FileBasedExampleGen
from tfx.dsl.components.base import executor_spec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import example_gen_pb2, range_config_pb2
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.component_spec import ChannelParameter, ExecutionParameter

from components.artifacts import RejectedLines
from components.review_example_gen import driver, executor, splits


class ReviewExampleGenSpec(types.ComponentSpec):
    """The interface of ReviewExampleGen: what TFX's file-based driver needs, and `options`."""

    PARAMETERS = {
        standard_component_specs.INPUT_BASE_KEY: ExecutionParameter(type=str),
        standard_component_specs.INPUT_CONFIG_KEY: ExecutionParameter(type=example_gen_pb2.Input),
        standard_component_specs.OUTPUT_CONFIG_KEY: ExecutionParameter(type=example_gen_pb2.Output),
        standard_component_specs.OUTPUT_DATA_FORMAT_KEY: ExecutionParameter(type=int),
        standard_component_specs.RANGE_CONFIG_KEY: ExecutionParameter(
            type=range_config_pb2.RangeConfig, optional=True
        ),
        executor.OPTIONS_KEY: ExecutionParameter(type=str),
    }
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        standard_component_specs.EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples),
        executor.REJECTED_KEY: ChannelParameter(type=RejectedLines),
    }


class ReviewExampleGen(FileBasedExampleGen):
    """Raw review files -> `examples` (splits train, eval, test) and `rejected` lines.

    A FileBasedExampleGen to TFX: its driver fingerprints the input files, so that a run on
    unchanged files is answered from the cache.
    """

    SPEC_CLASS = ReviewExampleGenSpec
    DRIVER_CLASS = driver.Driver
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)

    def __init__(
        self,
        input_base: str | RuntimeParameter,
        patterns: Mapping[str, str],
        read_options: Mapping[str, Any],
        max_examples: Mapping[str, int] | None = None,
        max_rejected_fraction: float = 0.01,
    ):
        """Constructs the component.

        Args:
          input_base: folder or gs:// prefix with the raw files; `sample`: the package's own.
          patterns: group -> glob below `input_base`; groups are the splits train, eval and test,
            or the single group `all`.
          read_options: arguments of `preprocessing.readers.ReadOptions`.
          max_examples: split -> how many reviews are kept in it.
          max_rejected_fraction: the run fails when more of the lines cannot be used.
        """
        options = {
            "read": dict(read_options),
            "max_examples": dict(max_examples or {}),
            "max_rejected_fraction": max_rejected_fraction,
        }
        input_config = example_gen_pb2.Input(
            splits=[
                example_gen_pb2.Input.Split(name=name, pattern=pattern)
                for name, pattern in patterns.items()
            ]
        )
        output_config = example_gen_pb2.Output(
            split_config=example_gen_pb2.SplitConfig(
                splits=[
                    example_gen_pb2.SplitConfig.Split(name=name, hash_buckets=1)
                    for name in splits.SPLITS
                ]
            )
        )
        spec = ReviewExampleGenSpec(
            input_base=input_base,
            input_config=input_config,
            output_config=output_config,
            output_data_format=example_gen_pb2.FORMAT_TF_EXAMPLE,
            options=json.dumps(options, sort_keys=True),
            examples=types.Channel(type=standard_artifacts.Examples),
            rejected=types.Channel(type=RejectedLines),
        )
        # The parent builds a spec of its own, without `options` and `rejected`.
        super(FileBasedExampleGen, self).__init__(spec=spec)
