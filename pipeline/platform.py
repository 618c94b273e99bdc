"""The interface of a platform to the DAG. The package `platforms` contains the platforms."""

from __future__ import annotations

import abc
from typing import Any

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.types import BaseChannel

from components.trainer import Trainer
from pipeline.config import PipelineConfig


class Platform(abc.ABC):
    """A platform that runs the pipeline of some settings.

    Args:
      config: the settings, which `platforms.checks.check_target` has checked for the platform.
    """

    def __init__(self, config: PipelineConfig):
        self._config = config

    @property
    def name(self) -> str:
        """The name of the pipeline, in characters that the platform allows."""
        return self._config.name

    @property
    def metadata(self) -> str | None:
        """`paths.metadata`; None if the platform has an ML Metadata of its own."""
        return None

    @property
    def input_fingerprint(self) -> str:
        """The fingerprint of the input; empty if each submission adds it to the compiled pipeline.

        Raises:
          InputError: an input file cannot be read.
        """
        return ""

    @abc.abstractmethod
    def parameter(self, name: str, value: Any) -> Any:
        """Return `value`, or a parameter of the run whose default is `value`.

        Args:
          name: a key of `components.properties.RUN_PARAMETERS`.
          value: the value of the setting.
        """

    @abc.abstractmethod
    def served_model(self, node_id: str, candidate: BaseChannel | None = None) -> BaseNode:
        """Return a node whose output `model` is the served model, if there is one.

        The model is the baseline of the Evaluator, or the initial model of a warm start.

        Args:
          node_id: the id of the node, one of `pipeline.nodes`.
          candidate: the model that the node must not return; None for a warm start.
        """

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> BaseComponent:
        """Return the Trainer with the id `Trainer`.

        Args:
          custom_config: `trainer_module.settings.CustomConfig` as a dictionary.
          **arguments: the other arguments of `components.trainer.Trainer`.
        """
        return Trainer(custom_config=custom_config, **arguments)

    @abc.abstractmethod
    def configure(self, component: BaseNode) -> None:
        """Set the Beam arguments of a component, and the resources of its container."""
