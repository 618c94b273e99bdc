"""The settings of a training job, which the pipeline adds to the Trainer's `custom_config`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from core.settings import Section
from pipeline.cluster_settings import JobKindName

KUBERNETES_JOB_KEY = "kubernetes_job"
"""Key of the settings in `custom_config`; the value is `KubernetesJobSettings.model_dump()`."""
CUSTOM_JOB_KEY = "custom_job"
"""The same for `CustomJobSettings`."""

Positive = Annotated[float, Field(gt=0)]


class KubernetesJobSettings(Section):
    """The pods of a training on Kubernetes, from `kubeflow` and `cluster` in the settings."""

    kind: JobKindName = "auto"
    queue: str | None = None
    image: Annotated[str, Field(min_length=1)]
    namespace: str
    service_account: str | None = None
    # Of each pod.
    cpu: Positive | None = None
    memory: str | None = None
    # Of each pod that computes gradients.
    gpus: Annotated[int, Field(ge=0)] = 0
    gpu_type: str | None = None
    pod: dict[str, Any] = {}
    volume_claim: str | None = None
    volume_mount: str | None = None
    timeout_seconds: Positive
    poll_seconds: Positive = 10.0


class CustomJobSettings(Section):
    """The replicas of a training on Vertex AI, from `vertex` and `cluster` in the settings."""

    project: str
    region: str
    display_name: str
    image: Annotated[str, Field(min_length=1)]
    machine_type: str
    # Of each replica that computes gradients.
    gpus: Annotated[int, Field(ge=0)] = 0
    gpu_type: str = "NVIDIA_TESLA_T4"
    service_account: str | None = None
    network: str | None = None
    timeout_seconds: Positive
    poll_seconds: Positive = 20.0

    @property
    def parent(self) -> str:
        return f"projects/{self.project}/locations/{self.region}"
