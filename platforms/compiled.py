"""The common part of the platforms Vertex AI Pipelines and Kubeflow Pipelines."""

from __future__ import annotations

from typing import Any

from kfp.pipeline_spec import pipeline_spec_pb2
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel

from components.baseline import PushedBaseline
from components.pusher import VersionPusher
from pipeline.config import PipelineConfig
from pipeline.nodes import BASELINE, PUSHER, TRAINER, WARM_START
from platforms.beam import set_beam_args
from platforms.checks import cluster_name
from trainer_module.cluster import resources

_UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTP", 1)
}


class Compiled:
    """The part of `pipeline.platform.Platform` that is the same for both clusters.

    Attributes:
      default_gpu: the accelerator of a component whose settings name none.
    """

    default_gpu: str

    def __init__(self, config: PipelineConfig):
        self._config = config

    @property
    def name(self) -> str:
        return cluster_name(self._config)

    @property
    def metadata(self) -> None:
        return None

    @property
    def history(self) -> None:
        return None

    def warm_start(self) -> BaseNode:
        return self._served(WARM_START)

    def baseline(self, candidate: BaseChannel) -> BaseNode:
        return self._served(BASELINE, candidate)

    def _served(self, node_id: str, candidate: BaseChannel | None = None) -> BaseNode:
        # Not a Resolver: Kubeflow Pipelines refuses a pipeline that has one, and Vertex AI
        # implements only the strategies of TFX, which do not know what is served.
        return PushedBaseline(
            serving_dir=self._config.paths.serving,
            candidate=candidate,
        ).with_id(node_id)

    def pusher(
        self, model: BaseChannel, model_blessing: BaseChannel, infra_blessing: BaseChannel
    ) -> BaseComponent:
        serving = self._config.paths.serving
        return VersionPusher(model, model_blessing, infra_blessing, serving).with_id(PUSHER)

    def parameter(self, name: str, value: Any) -> RuntimeParameter:
        return RuntimeParameter(name=name, ptype=type(value), default=value)

    def place(self, component: BaseNode) -> None:
        set_beam_args(self._config, component, in_image=True)
        resources = self._config.cluster.resources.get(component.id)
        # A Trainer that starts a training job only follows it: the replicas get the resources.
        if resources is None or (component.id == TRAINER and self._has_peers):
            return
        spec = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec.ResourceSpec(
            cpu_limit=resources.cpu or 0.0,
            memory_limit=_gigabytes(resources.memory) if resources.memory else 0.0,
        )
        if resources.gpus:
            spec.accelerator.count = resources.gpus
            spec.accelerator.type = resources.gpu_type or self.default_gpu
        component.with_platform_config(spec)

    @property
    def _has_peers(self) -> bool:
        return resources.has_peers(self._config.training)


def _gigabytes(quantity: str) -> float:
    """Convert a Kubernetes quantity of bytes to the unit of the pipeline spec, 10^9 bytes."""
    number = quantity.rstrip("kKMGTPi")
    return float(number) * _UNITS[quantity[len(number) :]] / 1e9
