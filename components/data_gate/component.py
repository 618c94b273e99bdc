"""DataGate: fails the run if there are anomalies, which TFX's ExampleValidator only records."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.component_spec import ChannelParameter, ExecutionParameter

from components.artifacts import CheckedData
from components.data_gate import executor


class DataGateSpec(types.ComponentSpec):
    """The interface of DataGate."""

    PARAMETERS: dict[str, ExecutionParameter] = {}
    INPUTS = {
        standard_component_specs.ANOMALIES_KEY: ChannelParameter(
            type=standard_artifacts.ExampleAnomalies
        )
    }
    OUTPUTS = {executor.CHECKED_KEY: ChannelParameter(type=CheckedData)}


class DataGate(base_component.BaseComponent):
    """`anomalies` -> `checked`, or a failed run whose error names the feature and the reason.

    A component that must not read bad data depends on this one by `add_upstream_node`.
    """

    SPEC_CLASS = DataGateSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, anomalies: types.BaseChannel):
        """Construct the component.

        Args:
          anomalies: the `anomalies` output of an ExampleValidator.
        """
        super().__init__(
            spec=DataGateSpec(anomalies=anomalies, checked=types.Channel(type=CheckedData))
        )
