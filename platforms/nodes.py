"""Nodes that several platforms use."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.resolver import Resolver, ResolverStrategy
from tfx.types import BaseChannel, Channel, standard_artifacts

from components.pusher import VersionPusher
from pipeline.config import PipelineConfig
from pipeline.nodes import PUSHER


def resolve_model(
    strategy: type[ResolverStrategy],
    node_id: str,
    config: dict[str, Any] | None = None,
    **channels: BaseChannel,
) -> BaseNode:
    """Return a Resolver that chooses a model by `strategy`.

    Args:
      strategy: gets the channels `model` and `model_blessing`, and those of `channels`.
      node_id: the id of the node.
      config: the arguments of the constructor of `strategy`.
    """
    return Resolver(
        strategy_class=strategy,
        config=config,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
        **channels,
    ).with_id(node_id)


def filesystem_pusher(
    model: BaseChannel,
    model_blessing: BaseChannel,
    infra_blessing: BaseChannel,
    config: PipelineConfig,
) -> VersionPusher:
    """Return the Pusher, which copies a model that has both blessings to a new version.

    Args:
      model: the SavedModel.
      model_blessing: the Evaluator's blessing of the model.
      infra_blessing: the ServingCheck's blessing of the model.
      config: the settings, with the folder of all versions.
    """
    pusher = VersionPusher(model, model_blessing, infra_blessing, config.paths.serving)
    return pusher.with_id(PUSHER)
