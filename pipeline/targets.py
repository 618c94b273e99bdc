"""What differs between the engines that the one DAG runs on: all of it, each with its reason."""

from __future__ import annotations

from typing import Any

from ml_metadata.proto.metadata_store_pb2 import ConnectionConfig
from tfx.components import Pusher
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.dsl.components.common.resolver import Resolver, ResolverStrategy
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import (
    LatestBlessedModelStrategy,
)
from tfx.orchestration.data_types import RuntimeParameter
from tfx.proto import pusher_pb2
from tfx.types import BaseChannel, Channel, standard_artifacts

from components.baseline.component import PushedBaseline
from components.baseline.strategy import CANDIDATE_KEY, LastPushedModel
from components.review_example_gen.inputs import SAMPLE
from components.trainer.component import Trainer
from components.vertex_pusher.settings import EndpointSettings
from pipeline.beam import component_beam_args
from pipeline.config import PipelineConfig
from pipeline.inputs import input_files
from pipeline.metadata import connection_config
from pipeline.nodes import BASELINE, WARM_START
from pipeline.target_checks import Target, cluster_name
from trainer_module import local_cluster


class Local:
    """This machine, under TFX's local engine, which can do all that TFX can."""

    def __init__(self, config: PipelineConfig):
        self._config = config

    @property
    def name(self) -> str:
        """Of the pipeline."""
        return self._config.name

    @property
    def metadata(self) -> ConnectionConfig | None:
        """Where ML Metadata is kept; None: by the orchestrator.

        Raises:
          ConfigError: `paths.metadata` is not usable.
        """
        return connection_config(self._config.paths.metadata)

    @property
    def input_base(self) -> str | RuntimeParameter:
        """The folder with the reviews."""
        return input_files(self._config)[0]

    def parameter(self, name: str, value: Any) -> Any:
        """`value`, or a parameter of the run whose default it is."""
        return value

    def warm_start(self) -> BaseNode:
        """The node whose `model` a training starts from."""
        return _resolver(LastPushedModel, WARM_START)

    def baseline(self, candidate: BaseChannel) -> BaseNode:
        """The node whose `model` the candidate is compared with."""
        return _resolver(LastPushedModel, BASELINE, **{CANDIDATE_KEY: candidate})

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> Trainer:
        """The Trainer; a cluster of processes is started on this machine by `run_fn` itself."""
        return Trainer(custom_config=custom_config, **arguments)

    def pusher(self, model: BaseChannel, model_blessing: BaseChannel) -> BaseComponent:
        """The Pusher, into `paths.serving`."""
        return Pusher(
            model=model,
            model_blessing=model_blessing,
            push_destination=pusher_pb2.PushDestination(
                filesystem=pusher_pb2.PushDestination.Filesystem(
                    base_directory=self._config.paths.serving
                )
            ),
        )

    _in_image = False

    def place(self, component: BaseNode) -> None:
        """Tells a component where it runs, and what it may use there."""
        args = component_beam_args(self._config, component.id, in_image=self._in_image)
        if args:
            component.with_beam_pipeline_args(args)


class _Compiled(Local):
    """What Vertex AI and Kubeflow Pipelines have in common."""

    @property
    def name(self) -> str:
        return cluster_name(self._config)

    @property
    def metadata(self) -> None:
        return None

    def parameter(self, name: str, value: Any) -> RuntimeParameter:
        return RuntimeParameter(name=name, ptype=type(value), default=value)

    _in_image = True
    _default_gpu = "nvidia.com/gpu"

    def place(self, component: BaseNode) -> None:
        super().place(component)
        from kfp.pipeline_spec import pipeline_spec_pb2

        resources = self._config.cluster.resources.get(component.id)
        # A Trainer that starts other processes only waits for them; they get the resources.
        if resources is None or (component.id == "Trainer" and self._has_peers):
            return
        spec = pipeline_spec_pb2.PipelineDeploymentConfig.PipelineContainerSpec.ResourceSpec(
            cpu_limit=resources.cpu or 0.0,
            memory_limit=_gigabytes(resources.memory) if resources.memory else 0.0,
        )
        if resources.gpus:
            spec.accelerator.count = resources.gpus
            spec.accelerator.type = resources.gpu_type or self._default_gpu
        component.with_platform_config(spec)

    @property
    def _has_peers(self) -> bool:
        return local_cluster.has_peers(self._config.training)


class Vertex(_Compiled):
    """Vertex AI Pipelines."""

    _default_gpu = "NVIDIA_TESLA_T4"

    @property
    def input_base(self) -> RuntimeParameter:
        return self.parameter("input_base", input_files(self._config)[0])

    def warm_start(self) -> BaseNode:
        # Vertex AI resolves by queries of its own and knows no strategy but TFX's.
        return _resolver(LatestBlessedModelStrategy, WARM_START)

    def baseline(self, candidate: BaseChannel) -> BaseNode:
        # The candidate is not blessed yet when Vertex AI resolves, except on a run that is all
        # answered from the cache.
        return _resolver(LatestBlessedModelStrategy, BASELINE)

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> Trainer:
        if not self._has_peers:
            return super().trainer(custom_config, **arguments)
        from components.trainer.vertex_executor import VertexExecutor
        from components.trainer.vertex_settings import CUSTOM_JOB_KEY

        trainer = super().trainer(
            {**custom_config, CUSTOM_JOB_KEY: custom_job_settings(self._config)}, **arguments
        )
        trainer.executor_spec = ExecutorClassSpec(VertexExecutor)
        return trainer

    def pusher(self, model: BaseChannel, model_blessing: BaseChannel) -> BaseComponent:
        if self._config.push.destination == "filesystem":
            return super().pusher(model, model_blessing)
        from components.vertex_pusher.component import VertexPusher

        pusher = VertexPusher(model, model_blessing, endpoint_settings(self._config))
        return pusher.with_id("Pusher")


class Kubeflow(_Compiled):
    """Open-source Kubeflow Pipelines."""

    @property
    def input_base(self) -> RuntimeParameter:
        # None stands for the sample, whose path is another one in the image.
        return self.parameter("input_base", self._config.data.input_base or SAMPLE)

    def warm_start(self) -> BaseNode:
        # There is no Resolver: the API refuses a pipeline that has one.
        return self._pushed(WARM_START)

    def baseline(self, candidate: BaseChannel) -> BaseNode:
        return self._pushed(BASELINE, candidate)

    def _pushed(self, node_id: str, candidate: BaseChannel | None = None) -> BaseNode:
        return PushedBaseline(
            serving_dir=self._config.paths.serving,
            model_dir=self._config.evaluation.baseline_model,
            candidate=candidate,
        ).with_id(node_id)

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> Trainer:
        if not self._has_peers:
            return super().trainer(custom_config, **arguments)
        from components.trainer.tfjob_executor import TFJobExecutor
        from components.trainer.tfjob_settings import TFJOB_KEY

        trainer = super().trainer(
            {**custom_config, TFJOB_KEY: tfjob_settings(self._config)}, **arguments
        )
        trainer.executor_spec = ExecutorClassSpec(TFJobExecutor)
        return trainer


_CLASSES: dict[Target, type[Local]] = {"local": Local, "vertex": Vertex, "kubeflow": Kubeflow}


def make_target(config: PipelineConfig, name: Target) -> Local:
    """The target called `name`."""
    return _CLASSES[name](config)


def custom_job_settings(config: PipelineConfig) -> dict[str, Any]:
    """What the CustomJob of a training on Vertex AI is made of."""
    from components.trainer.vertex_settings import CustomJobSettings

    vertex = config.vertex
    resources = config.cluster.resources.get("Trainer")
    return CustomJobSettings(
        project=vertex.project or "",
        region=vertex.region or "",
        display_name=f"{cluster_name(config)}-training",
        image=config.cluster.image or "",
        machine_type=vertex.machine_type,
        gpus=resources.gpus if resources else 0,
        gpu_type=(resources and resources.gpu_type) or Vertex._default_gpu,
        service_account=vertex.service_account,
        network=vertex.network,
        timeout_seconds=vertex.training_timeout_hours * 3600,
    ).model_dump()


def endpoint_settings(config: PipelineConfig) -> EndpointSettings:
    """Where `push.destination: vertex` deploys to."""
    vertex = config.vertex
    return EndpointSettings(
        project=vertex.project or "",
        region=vertex.region or "",
        endpoint=vertex.endpoint or cluster_name(config),
        model_name=cluster_name(config),
        image=vertex.serving_image or "",
        machine_type=vertex.machine_type,
    )


def tfjob_settings(config: PipelineConfig) -> dict[str, Any]:
    """What the TFJob of a training on Kubernetes is made of."""
    from components.trainer.tfjob_settings import TFJobSettings

    kubeflow = config.kubeflow
    resources = config.cluster.resources.get("Trainer")
    volume = kubeflow.volume
    return TFJobSettings(
        image=config.cluster.image or "",
        namespace=kubeflow.namespace,
        service_account=kubeflow.service_account,
        cpu=resources.cpu if resources else None,
        memory=resources.memory if resources else None,
        gpus=resources.gpus if resources else 0,
        gpu_type=resources.gpu_type if resources else None,
        node_selector=kubeflow.node_selector,
        tolerations=[
            toleration.model_dump(exclude_none=True) for toleration in kubeflow.tolerations
        ],
        volume_claim=volume.claim if volume else None,
        volume_mount=volume.mount if volume else None,
        timeout_seconds=kubeflow.training_timeout_hours * 3600,
        refused_seconds=kubeflow.refused_timeout_minutes * 60,
    ).model_dump()


def _resolver(strategy: type[ResolverStrategy], node_id: str, **channels: BaseChannel) -> BaseNode:
    return Resolver(
        strategy_class=strategy,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
        **channels,
    ).with_id(node_id)


_UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTP", 1)
}


def _gigabytes(quantity: str) -> float:
    """A Kubernetes quantity in the unit of the pipeline spec, 10^9 bytes."""
    number = quantity.rstrip("kKMGTPi")
    return float(number) * _UNITS[quantity[len(number) :]] / 1e9
