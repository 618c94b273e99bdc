"""The DAG on this machine, for TFX's local engine."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.resolver import Resolver
from tfx.types import BaseChannel, Channel, standard_artifacts

from components.baseline import CANDIDATE_KEY, ServedBaseline
from pipeline.destinations import destination_json
from pipeline.inputs import input_fingerprint
from pipeline.platform import Platform
from platforms.beam import set_beam_args


class Local(Platform):
    """This machine. A run has no parameters, and `run_fn` starts the processes of a training."""

    @property
    def metadata(self) -> str:
        return self._config.paths.metadata

    @cached_property
    def input_fingerprint(self) -> str:
        return input_fingerprint(self._config)

    def parameter(self, name: str, value: Any) -> Any:
        return value

    def served_model(self, node_id: str, candidate: BaseChannel | None = None) -> BaseNode:
        channels = {CANDIDATE_KEY: candidate} if candidate else {}
        return Resolver(
            strategy_class=ServedBaseline,
            config={
                "destination": destination_json(self._config),
                "copies": os.path.join(self._config.paths.root, "served"),
            },
            model=Channel(type=standard_artifacts.Model),
            **channels,
        ).with_id(node_id)

    def configure(self, component: BaseNode) -> None:
        set_beam_args(self._config, component)
