"""Nodes that several platforms use."""

from __future__ import annotations

from tfx.components import Pusher
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.resolver import Resolver, ResolverStrategy
from tfx.proto import pusher_pb2
from tfx.types import BaseChannel, Channel, standard_artifacts

from components.signing_pusher.component import SigningPusher
from pipeline.config import PipelineConfig
from pipeline.nodes import PUSHER


def resolve_model(
    strategy: type[ResolverStrategy], node_id: str, **channels: BaseChannel
) -> BaseNode:
    """Return a Resolver that chooses a model by `strategy`.

    Args:
      strategy: gets the channels `model` and `model_blessing`, and those of `channels`.
      node_id: the id of the node.
    """
    return Resolver(
        strategy_class=strategy,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
        **channels,
    ).with_id(node_id)


def filesystem_pusher(
    model: BaseChannel,
    model_blessing: BaseChannel,
    infra_blessing: BaseChannel,
    config: PipelineConfig,
) -> Pusher:
    """Return the Pusher, which copies a model that has both blessings to a new version.

    Args:
      model: the SavedModel.
      model_blessing: the Evaluator's blessing of the model.
      infra_blessing: the ServingCheck's blessing of the model.
      config: the settings, with the folder of all versions and the key of a signature.
    """
    channels = {
        "model": model,
        "model_blessing": model_blessing,
        "infra_blessing": infra_blessing,
    }
    folder = pusher_pb2.PushDestination.Filesystem(base_directory=config.paths.serving)
    destination = pusher_pb2.PushDestination(filesystem=folder)
    private_key = config.signing.private_key
    if private_key is None:
        return Pusher(**channels, push_destination=destination)
    pusher = SigningPusher(**channels, push_destination=destination, private_key=private_key)
    return pusher.with_id(PUSHER)
