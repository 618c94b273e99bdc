"""The DAG on this machine, for TFX's local engine."""

from __future__ import annotations

import os
from typing import Any

from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.resolver import Resolver
from tfx.types import BaseChannel, Channel, standard_artifacts

from components.baseline import CANDIDATE_KEY, CHECK_KEY, ServedBaseline
from components.pusher import VersionPusher
from components.trainer import Trainer
from core.metadata import connection_config
from pipeline.config import PipelineConfig
from pipeline.inputs import input_files
from pipeline.nodes import BASELINE, PUSHER, WARM_START
from platforms.beam import set_beam_args
from platforms.local.places import make_folder


class Local:
    """See `pipeline.platform.Platform`. A local run has no runtime parameters."""

    def __init__(self, config: PipelineConfig):
        self._config = config

    @property
    def name(self) -> str:
        return self._config.name

    @property
    def metadata(self) -> ConnectionConfig:
        location = self._config.paths.metadata
        if "://" not in location:
            make_folder("paths.metadata", os.path.dirname(location))
        return connection_config(location)

    @property
    def history(self) -> str:
        return self._config.paths.metadata

    @property
    def input_base(self) -> str:
        return input_files(self._config)[0]

    def parameter(self, name: str, value: Any) -> Any:
        return value

    def warm_start(self) -> BaseNode:
        return self._served(WARM_START)

    def baseline(self, candidate: BaseChannel) -> BaseNode:
        return self._served(BASELINE, **{CANDIDATE_KEY: candidate})

    def _served(self, node_id: str, **channels: BaseChannel) -> BaseNode:
        config = {
            "serving": self._config.paths.serving,
            "copies": os.path.join(self._config.paths.root, "served"),
            "pushes": self._config.push.destination != "none",
        }
        checks = {CHECK_KEY: Channel(type=standard_artifacts.InfraBlessing)}
        return Resolver(
            strategy_class=ServedBaseline,
            config=config,
            model=Channel(type=standard_artifacts.Model),
            model_blessing=Channel(type=standard_artifacts.ModelBlessing),
            **checks,
            **channels,
        ).with_id(node_id)

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> BaseComponent:
        # `run_fn` starts the processes of a local cluster itself.
        return Trainer(custom_config=custom_config, **arguments)

    def pusher(
        self, model: BaseChannel, model_blessing: BaseChannel, infra_blessing: BaseChannel
    ) -> BaseComponent:
        serving = self._config.paths.serving
        return VersionPusher(model, model_blessing, infra_blessing, serving).with_id(PUSHER)

    def place(self, component: BaseNode) -> None:
        set_beam_args(self._config, component, in_image=False)
