"""What the DAG leaves to the platform that it runs on."""

from __future__ import annotations

from typing import Any, Protocol

from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel


class Platform(Protocol):
    """One of the places where a pipeline runs; `platforms` implements each."""

    @property
    def name(self) -> str:
        """The pipeline's name, in characters that the platform allows."""

    @property
    def metadata(self) -> ConnectionConfig | None:
        """The connection to ML Metadata; None where the platform has an ML Metadata of its own.

        Raises:
          ConfigError: `paths.metadata` is not usable.
        """

    @property
    def input_base(self) -> str | RuntimeParameter:
        """The folder with the raw reviews."""

    def parameter(self, name: str, value: Any) -> Any:
        """Return `value`, or a parameter of the run that has `value` as its default."""

    def warm_start(self) -> BaseNode:
        """Return the node whose output `model` the training starts from."""

    def baseline(self, candidate: BaseChannel) -> BaseNode:
        """Return the node whose output `model` the candidate is compared with."""

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> BaseComponent:
        """Return the Trainer with the id `Trainer`; `arguments` are those of our Trainer."""

    def pusher(self, model: BaseChannel, model_blessing: BaseChannel) -> BaseComponent:
        """Return the Pusher with the id `Pusher`."""

    def place(self, component: BaseNode) -> None:
        """Give a component its Beam arguments and the resources of its container."""
