"""The parts of the DAG that Kubeflow Pipelines and Vertex AI Pipelines provide."""

from __future__ import annotations

import abc
from typing import Any

from kfp.pipeline_spec import pipeline_spec_pb2
from kubernetes.utils import parse_quantity
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel

from components.baseline import PushedBaseline
from pipeline.cluster_settings import Resources
from pipeline.destinations import destination_json
from pipeline.nodes import TRAINER
from pipeline.platform import Platform
from platforms.beam import set_beam_args
from platforms.clusters import cluster_name
from platforms.training_jobs.executor import TrainingJobTrainer
from platforms.training_jobs.job import CustomJobSettings, KubernetesJobSettings


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
        # implements only the strategies of TFX, which cannot read a destination.
        destination = destination_json(self._config)
        return PushedBaseline(destination=destination, candidate=candidate).with_id(node_id)

    def parameter(self, name: str, value: Any) -> RuntimeParameter:
        return RuntimeParameter(name=name, ptype=type(value), default=value)

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> BaseComponent:
        # The number of GPUs is a part of the cache key, because it affects the replicas and with
        # them the size of a batch.
        custom_config = {**custom_config, "gpus": self._trainer_resources.gpus}
        if not self._config.training.has_peers:
            return super().trainer(custom_config, **arguments)
        return self._job_trainer(custom_config=custom_config, **arguments).with_id(TRAINER)

    @abc.abstractmethod
    def _job_trainer(self, **arguments: Any) -> BaseComponent:
        """Return a Trainer that starts a training job of several processes.

        Args:
          **arguments: those of `components.trainer.Trainer`.
        """

    @property
    def _trainer_resources(self) -> Resources:
        return self._config.cluster.resources.get(TRAINER, Resources())

    def configure(self, component: BaseNode) -> None:
        set_beam_args(self._config, component)
        own = self._config.cluster.resources.get(component.id)
        # The resources are those of the replicas of a training job. The Trainer only polls it.
        is_job = component.id == TRAINER and self._config.training.has_peers
        if own is None or is_job:
            return
        spec = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec.ResourceSpec(
            cpu_limit=own.cpu or 0.0,
            # The unit of the pipeline spec is 10^9 bytes.
            memory_limit=float(parse_quantity(own.memory or 0)) / 1e9,
        )
        if own.gpus:
            spec.accelerator.count = own.gpus
            spec.accelerator.type = own.gpu_type or self.default_gpu
        component.with_platform_config(spec)


class Kubeflow(Compiled):
    """Kubeflow Pipelines."""

    default_gpu = "nvidia.com/gpu"

    def _job_trainer(self, **arguments: Any) -> BaseComponent:
        kubeflow, own = self._config.kubeflow, self._trainer_resources
        volume = kubeflow.volume
        settings = KubernetesJobSettings(
            kind=kubeflow.training_job,
            queue=kubeflow.queue,
            image=self._config.cluster.image or "",
            namespace=kubeflow.namespace,
            service_account=kubeflow.service_account,
            cpu=own.cpu,
            memory=own.memory,
            gpus=own.gpus,
            gpu_type=own.gpu_type,
            pod=kubeflow.training_pod,
            volume_claim=volume.claim if volume else None,
            volume_mount=volume.mount if volume else None,
            timeout_seconds=self._config.cluster.training_timeout_hours * 3600,
        )
        return TrainingJobTrainer(settings, **arguments)


class Vertex(Compiled):
    """Vertex AI Pipelines."""

    default_gpu = "NVIDIA_TESLA_T4"

    def _job_trainer(self, **arguments: Any) -> BaseComponent:
        vertex, own = self._config.vertex, self._trainer_resources
        settings = CustomJobSettings(
            project=vertex.project or "",
            region=vertex.region or "",
            display_name=f"{self.name}-training",
            image=self._config.cluster.image or "",
            machine_type=vertex.machine_type,
            gpus=own.gpus,
            gpu_type=own.gpu_type or self.default_gpu,
            service_account=vertex.service_account,
            network=vertex.network,
            timeout_seconds=self._config.cluster.training_timeout_hours * 3600,
        )
        return TrainingJobTrainer(settings, **arguments)
