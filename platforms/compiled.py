"""The common part of the platforms Vertex AI Pipelines and Kubeflow Pipelines."""

from __future__ import annotations

from typing import Any

from kfp.pipeline_spec import pipeline_spec_pb2
from kubernetes.utils import parse_quantity
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel

from components.baseline import PushedBaseline
from pipeline.nodes import TRAINER
from pipeline.platform import Platform
from platforms.beam import set_beam_args
from platforms.checks import cluster_name
from trainer_module.cluster import resources


class Compiled(Platform):
    """The part of a platform that is the same for both clusters.

    Attributes:
      default_gpu: the accelerator of a component whose settings name none.
    """

    default_gpu: str

    @property
    def name(self) -> str:
        return cluster_name(self._config)

    def served_model(self, node_id: str, candidate: BaseChannel | None = None) -> BaseNode:
        # Not a Resolver: Kubeflow Pipelines refuses a pipeline that has one, and Vertex AI
        # implements only the strategies of TFX, which do not know what is served.
        serving = self._config.paths.serving
        return PushedBaseline(serving_dir=serving, candidate=candidate).with_id(node_id)

    def parameter(self, name: str, value: Any) -> RuntimeParameter:
        return RuntimeParameter(name=name, ptype=type(value), default=value)

    def place(self, component: BaseNode) -> None:
        set_beam_args(self._config, component)
        resources = self._config.cluster.resources.get(component.id)
        # A Trainer that starts a training job only follows it: the replicas get the resources.
        if resources is None or (component.id == TRAINER and self._has_peers):
            return
        spec = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec.ResourceSpec(
            cpu_limit=resources.cpu or 0.0,
            # The unit of the pipeline spec is 10^9 bytes.
            memory_limit=float(parse_quantity(resources.memory or 0)) / 1e9,
        )
        if resources.gpus:
            spec.accelerator.count = resources.gpus
            spec.accelerator.type = resources.gpu_type or self.default_gpu
        component.with_platform_config(spec)

    @property
    def _has_peers(self) -> bool:
        return resources.has_peers(self._config.training)
