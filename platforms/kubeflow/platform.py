"""The DAG on Kubeflow Pipelines."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base.base_component import BaseComponent

from pipeline.config import PipelineConfig
from pipeline.nodes import TRAINER
from platforms.compiled import Compiled
from platforms.training_jobs.executor import KubernetesTrainer
from platforms.training_jobs.settings import KubernetesJobSettings


class Kubeflow(Compiled):
    """Kubeflow Pipelines."""

    default_gpu = "nvidia.com/gpu"

    def trainer(self, custom_config: dict[str, Any], **arguments: Any) -> BaseComponent:
        if not self._has_peers:
            return super().trainer(custom_config, **arguments)
        return KubernetesTrainer(
            job_settings(self._config), custom_config=custom_config, **arguments
        ).with_id(TRAINER)


def job_settings(config: PipelineConfig) -> KubernetesJobSettings:
    kubeflow = config.kubeflow
    resources = config.cluster.resources.get(TRAINER)
    volume = kubeflow.volume
    return KubernetesJobSettings(
        kind=kubeflow.training_job,
        queue=kubeflow.queue,
        image=config.cluster.image or "",
        namespace=kubeflow.namespace,
        service_account=kubeflow.service_account,
        cpu=resources.cpu if resources else None,
        memory=resources.memory if resources else None,
        gpus=resources.gpus if resources else 0,
        gpu_type=resources.gpu_type if resources else None,
        pod=kubeflow.training_pod,
        volume_claim=volume.claim if volume else None,
        volume_mount=volume.mount if volume else None,
        timeout_seconds=config.cluster.training_timeout_hours * 3600,
    )
