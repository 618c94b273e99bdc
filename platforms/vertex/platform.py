"""The DAG on Vertex AI Pipelines."""

from __future__ import annotations

import json
from typing import Any

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.base_node import BaseNode
from tfx.types import BaseChannel

from pipeline.config import PipelineConfig
from pipeline.nodes import PUSHER, TRAINER
from platforms.checks import cluster_name
from platforms.compiled import Compiled
from platforms.training_jobs.executor import CustomJobTrainer
from platforms.training_jobs.settings import CustomJobSettings
from platforms.vertex.baseline import DeployedBaseline
from platforms.vertex.pusher import ENDPOINT_KEY, VertexPusher

_DEFAULT_GPU = "NVIDIA_TESLA_T4"


class Vertex(Compiled):
    """Vertex AI Pipelines."""

    default_gpu = _DEFAULT_GPU

    def served_model(self, node_id: str, candidate: BaseChannel | None = None) -> BaseNode:
        if self._config.push.destination != "vertex":
            return super().served_model(node_id, candidate)
        endpoint = json.dumps(_endpoint(self._config))
        return DeployedBaseline(endpoint=endpoint, candidate=candidate).with_id(node_id)

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> BaseComponent:
        if not self._has_peers:
            return super().trainer(custom_config, **arguments)
        return CustomJobTrainer(
            custom_job_settings(self._config), custom_config=custom_config, **arguments
        ).with_id(TRAINER)

    def pusher(
        self, model: BaseChannel, model_blessing: BaseChannel, infra_blessing: BaseChannel
    ) -> BaseComponent:
        if self._config.push.destination == "filesystem":
            return super().pusher(model, model_blessing, infra_blessing)
        return VertexPusher(
            model=model,
            model_blessing=model_blessing,
            infra_blessing=infra_blessing,
            custom_config={ENDPOINT_KEY: _endpoint(self._config)},
        ).with_id(PUSHER)


def custom_job_settings(config: PipelineConfig) -> CustomJobSettings:
    """Return the settings of the CustomJob of a training on Vertex AI."""
    vertex = config.vertex
    resources = config.cluster.resources.get(TRAINER)
    return CustomJobSettings(
        project=vertex.project or "",
        region=vertex.region or "",
        display_name=f"{cluster_name(config)}-training",
        image=config.cluster.image or "",
        machine_type=vertex.machine_type,
        gpus=resources.gpus if resources else 0,
        gpu_type=(resources and resources.gpu_type) or _DEFAULT_GPU,
        service_account=vertex.service_account,
        network=vertex.network,
        timeout_seconds=config.cluster.training_timeout_hours * 3600,
    )


def _endpoint(config: PipelineConfig) -> dict[str, Any]:
    """Return the arguments of `Endpoint.of`."""
    return {"vertex": config.vertex.model_dump(), "name": cluster_name(config)}
