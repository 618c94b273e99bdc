"""ReviewSchemaGen: the schema in this package, as an artifact."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import standard_artifacts, standard_component_specs
from tfx.types.component_spec import ChannelParameter, ExecutionParameter

from components.schema import executor


class ReviewSchemaGenSpec(types.ComponentSpec):
    """The interface of ReviewSchemaGen."""

    PARAMETERS = {executor.FINGERPRINT_KEY: ExecutionParameter(type=str)}
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        standard_component_specs.SCHEMA_KEY: ChannelParameter(type=standard_artifacts.Schema)
    }


class ReviewSchemaGen(base_component.BaseComponent):
    """The schema of reviews -> `schema`.

    TFX's ImportSchemaGen takes a path instead: a path of the machine that compiles does not exist
    in a container, and an edited file with the same path would be a cache hit.
    """

    SPEC_CLASS = ReviewSchemaGenSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self) -> None:
        super().__init__(
            spec=ReviewSchemaGenSpec(
                fingerprint=executor.fingerprint(),
                schema=types.Channel(type=standard_artifacts.Schema),
            )
        )
