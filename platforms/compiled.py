"""The parts of the DAG that Kubeflow Pipelines and Vertex AI Pipelines provide."""

from __future__ import annotations

import abc
import json
from typing import Any

import yaml
from kfp.pipeline_spec import pipeline_spec_pb2
from kubernetes.utils import parse_quantity
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import BaseChannel

from components.baseline import PushedBaseline
from pipeline.cluster_settings import Resources, Volume
from pipeline.destinations import destination_json
from pipeline.nodes import EXAMPLE_GEN, PUSHER, SERVED_MODEL, TRAINER, WARM_START
from pipeline.platform import Platform
from platforms.beam import set_beam_args
from platforms.clusters import ClusterTarget, cluster_name
from platforms.pipeline_spec import tasks_of
from platforms.training_jobs.executor import TrainingJobTrainer
from platforms.training_jobs.job import CustomJobSettings, KubernetesJobSettings


class Compiled(Platform):
    """The part of a platform that is the same for both clusters.

    Attributes:
      target: the name of the platform.
      default_gpu: the accelerator of a component whose settings name none.
      never_cached: the nodes whose outputs depend on more than the parameters and artifacts that
        they read. A submission enables the cache for ReviewExampleGen again, see
        `platforms.input_cache`.
      encodings: how often the parameters of a step are encoded as JSON.
    """

    target: ClusterTarget
    default_gpu: str
    never_cached: tuple[str, ...]
    encodings: int

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
    def content(self, job: dict[str, Any]) -> str:
        """Return the content of the file of a compiled pipeline.

        Args:
          job: the JSON of a PipelineJob.
        """

    def parameter_sizes(self, spec: dict[str, Any]) -> dict[str, int]:
        """Return what has parameters, as a noun -> the size of its encoded parameters in bytes.

        Args:
          spec: the JSON of a PipelineSpec.
        """
        return {
            f"the step {name}": _encoded_size(
                task.get("inputs", {}).get("parameters", {}), self.encodings
            )
            for name, task in tasks_of(spec).items()
        }

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
    """Kubeflow Pipelines.

    Argo Workflows passes the template of a pod in a variable, which contains the JSON of the pod,
    and in it that of the arguments. With a longer variable it requires a permission that Kubeflow
    Pipelines does not give.
    """

    target = "kubeflow"
    default_gpu = "nvidia.com/gpu"
    never_cached = (EXAMPLE_GEN, SERVED_MODEL, WARM_START)
    encodings = 3

    def content(self, job: dict[str, Any]) -> str:
        spec, volume = job["pipelineSpec"], self._config.kubeflow.volume
        documents = [spec, _platform_spec(spec, volume)] if volume else [spec]
        return str(yaml.safe_dump_all(documents, sort_keys=True))

    def parameter_sizes(self, spec: dict[str, Any]) -> dict[str, int]:
        # The first pod of a run gets the tasks of all steps.
        return {**super().parameter_sizes(spec), "all steps": _encoded_size(spec["root"], 2)}

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

    target = "vertex"
    default_gpu = "NVIDIA_TESLA_T4"
    # The result of the Pusher depends on the served model, which a rollback changes.
    never_cached = (EXAMPLE_GEN, SERVED_MODEL, WARM_START, PUSHER)
    encodings = 1

    def content(self, job: dict[str, Any]) -> str:
        return json.dumps(job, indent=2, sort_keys=True) + "\n"

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


PLATFORMS: dict[ClusterTarget, type[Compiled]] = {"kubeflow": Kubeflow, "vertex": Vertex}
"""Target -> its platform."""


def _encoded_size(value: Any, times: int) -> int:
    """Return the size of a value in bytes after it was encoded as JSON several times."""
    for _ in range(times):
        value = json.dumps(value, ensure_ascii=False)
    return len(value.encode())


def _platform_spec(spec: dict[str, Any], volume: Volume) -> dict[str, Any]:
    """Return the YAML document for Kubernetes, which mounts the volume in every step."""
    mount = {
        "constant": volume.claim,
        "pvcNameParameter": {"runtimeValue": {"constant": volume.claim}},
        "mountPath": volume.mount,
    }
    executors = {name: {"pvcMount": [mount]} for name in spec["deploymentSpec"]["executors"]}
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
