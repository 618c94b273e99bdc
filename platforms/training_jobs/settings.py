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


class KubernetesJobSettings(Section):
    """The pods of a training on Kubernetes, and the limits of the job.

    Attributes:
      kind: the kind of the job; `auto`: the first kind that the cluster can run.
      queue: the LocalQueue of Kueue that admits the job; None: no queue.
      image: image of every pod, which contains this package.
      namespace: namespace of the job and its pods.
      service_account: service account of the pods; None: the namespace's default.
      cpu: cores of each pod; None: the cluster's default.
      memory: memory of each pod, a Kubernetes quantity; None: the cluster's default.
      gpus: number of GPUs of each pod that computes gradients.
      gpu_type: resource name of the GPUs; None: `nvidia.com/gpu`.
      pod: fields of the spec of each pod, in the words of Kubernetes.
      volume_claim: a PersistentVolumeClaim that the pods mount; None: none.
      volume_mount: path at which the pods mount the volume.
      timeout_seconds: seconds after which the job is deleted.
      refused_seconds: seconds after which the job is deleted if Kubernetes refuses its pods for a
        permanent reason.
      poll_seconds: seconds between two requests for the state of the job.
    """

    kind: JobKindName = "auto"
    queue: str | None = None
    image: Annotated[str, Field(min_length=1)]
    namespace: str
    service_account: str | None = None
    cpu: Annotated[float, Field(gt=0)] | None = None
    memory: str | None = None
    gpus: Annotated[int, Field(ge=0)] = 0
    gpu_type: str | None = None
    pod: dict[str, Any] = {}
    volume_claim: str | None = None
    volume_mount: str | None = None
    timeout_seconds: Annotated[float, Field(gt=0)]
    refused_seconds: Annotated[float, Field(gt=0)] = 600.0
    poll_seconds: Annotated[float, Field(gt=0)] = 10.0


class CustomJobSettings(Section):
    """The machines of the replicas of a training on Vertex AI, and the limits of the CustomJob.

    Attributes:
      project, region: project and region of Google Cloud.
      display_name: display name of the CustomJob.
      image: image of every replica, which contains this package.
      machine_type: machine type of every replica.
      gpus: number of GPUs of each replica that computes gradients.
      gpu_type: accelerator type, such as `NVIDIA_TESLA_T4`.
      service_account: service account of the replicas; None: the project's default.
      network: VPC that the replicas are peered with; None: none.
      timeout_seconds: seconds after which the CustomJob is cancelled.
      poll_seconds: seconds between two requests for the state of the CustomJob.
    """

    project: str
    region: str
    display_name: str
    image: Annotated[str, Field(min_length=1)]
    machine_type: str
    gpus: Annotated[int, Field(ge=0)] = 0
    gpu_type: str = "NVIDIA_TESLA_T4"
    service_account: str | None = None
    network: str | None = None
    timeout_seconds: Annotated[float, Field(gt=0)]
    poll_seconds: Annotated[float, Field(gt=0)] = 20.0

    @property
    def parent(self) -> str:
        """The location of the CustomJob."""
        return f"projects/{self.project}/locations/{self.region}"
