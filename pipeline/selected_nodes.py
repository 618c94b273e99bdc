"""The nodes that some settings select. This module imports no TFX, which takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from pipeline.config import PipelineConfig
from pipeline.nodes import NODES, PUSHER, TUNER, WARM_START
from pipeline.project import component_names

if TYPE_CHECKING:
    from tfx.dsl.components.base.base_node import BaseNode

_IS_SELECTED: dict[str, Callable[[PipelineConfig], bool]] = {
    WARM_START: lambda config: config.training.warm_start,
    TUNER: lambda config: config.training.tuner_trials is not None,
    PUSHER: lambda config: config.push.is_enabled,
}
"""Id of an optional node -> whether some settings select it."""


def node_ids(config: PipelineConfig) -> list[str]:
    """Return the ids of the nodes that some settings select, in the order of `NODES`.

    The components of the user's project are the last ones before the push.

    Raises:
      ConfigError: the name of a file in the project is not allowed.
    """
    at = NODES.index(PUSHER)
    names = [*NODES[:at], *component_names(config.project), *NODES[at:]]
    return [name for name in names if name not in _IS_SELECTED or _IS_SELECTED[name](config)]


def in_order(built: Iterable[BaseNode | None], config: PipelineConfig) -> list[BaseNode]:
    """Return the nodes of a pipeline in the order of `NODES`, after a check of their completeness.

    Args:
      built: the nodes that the pipeline consists of, in any order; None for a node that `config`
        does not select.
      config: the settings of the pipeline.

    Raises:
      ConfigError: the name of a file in the project is not allowed.
      ValueError: the nodes are not those of `node_ids`, two of them have the same id, or one of
        them reads the output of a node that is not among them.
    """
    nodes: dict[str, BaseNode] = {}
    for node in built:
        if node is None:
            continue
        if node.id in nodes:
            raise ValueError(f"two nodes have the id {node.id}; give one of them another id")
        nodes[node.id] = node
    ids = node_ids(config)
    for name in nodes:
        if name not in ids:
            raise ValueError(
                f"the node {name} is built, but pipeline/nodes.py or these settings leave it out; "
                "add its id to NODES, or build it only if the settings select it"
            )
    for name in ids:
        if name not in nodes:
            raise ValueError(
                f"the node {name} of pipeline/nodes.py is not built; build it, remove its id from "
                "NODES, or let pipeline/selected_nodes.py leave it out"
            )
    for node in nodes.values():
        for key, channel in node.inputs.items():
            for producer in channel.get_data_dependent_node_ids():
                if producer not in nodes:
                    raise ValueError(
                        f"the input {key} of the node {node.id} is an output of {producer}, which "
                        "is not among the nodes of the pipeline; add it to them"
                    )
    return [nodes[name] for name in ids]
