"""The protocol between the DAG and the platform that it runs on."""

from __future__ import annotations

from typing import Any, Protocol

from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel


class Platform(Protocol):
    """A platform that runs the pipeline; the package `platforms` has the implementations."""

    @property
    def name(self) -> str:
        """The name of the pipeline, in characters that the platform allows."""

    @property
    def metadata(self) -> ConnectionConfig | None:
        """The connection to ML Metadata; None if the platform has an ML Metadata of its own.

        Raises:
          ConfigError: `paths.metadata` is not usable.
        """

    @property
    def input_base(self) -> str | RuntimeParameter:
        """The folder or gs:// prefix with the raw reviews."""

    @property
    def history(self) -> str | None:
        """`paths.metadata`, if a component can read ML Metadata there; None on a cluster."""

    def parameter(self, name: str, value: Any) -> Any:
        """Return `value`, or a parameter of the run that has `value` as its default."""

    def warm_start(self) -> BaseNode:
        """Return the node whose output `model` is the initial model of the training."""

    def baseline(self, candidate: BaseChannel) -> BaseNode:
        """Return the node whose output `model` is the baseline of the Evaluator."""

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> BaseComponent:
        """Return the Trainer with the id `Trainer`; `arguments` are those of our Trainer."""

    def pusher(
        self, model: BaseChannel, model_blessing: BaseChannel, infra_blessing: BaseChannel
    ) -> BaseComponent:
        """Return the Pusher with the id `Pusher`; it pushes a model that has both blessings."""

    def place(self, component: BaseNode) -> None:
        """Set the Beam arguments of a component, and the resources of its container."""
