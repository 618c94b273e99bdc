"""The settings of a TFJob, which the pipeline adds to the Trainer's `custom_config`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import Section

TFJOB_KEY = "tfjob"
"""Key of the settings in `custom_config`; the value is `TFJobSettings.model_dump()`."""


class TFJobSettings(Section):
    """The pods of a training on Kubernetes, and the limits of the TFJob.

    Attributes:
      image: image of every pod, which contains this package.
      namespace: namespace of the TFJob and its pods.
      service_account: service account of the pods; None: the namespace's default.
      cpu: cores of each pod; None: the cluster's default.
      memory: memory of each pod, a Kubernetes quantity; None: the cluster's default.
      gpus: number of GPUs of each pod that computes gradients.
      gpu_type: resource name of the GPUs; None: `nvidia.com/gpu`.
      node_selector: node labels that the pods require.
      tolerations: Kubernetes tolerations of the pods.
      volume_claim: a PersistentVolumeClaim that the pods mount; None: none.
      volume_mount: path at which the pods mount the volume.
      timeout_seconds: seconds after which the TFJob is deleted.
      refused_seconds: seconds after which the TFJob is deleted if Kubernetes refuses its pods.
      poll_seconds: seconds between two requests for the state of the TFJob.
    """

    image: Annotated[str, Field(min_length=1)]
    namespace: str
    service_account: str | None = None
    cpu: Annotated[float, Field(gt=0)] | None = None
    memory: str | None = None
    gpus: Annotated[int, Field(ge=0)] = 0
    gpu_type: str | None = None
    node_selector: dict[str, str] = {}
    tolerations: list[dict[str, str]] = []
    volume_claim: str | None = None
    volume_mount: str | None = None
    timeout_seconds: Annotated[float, Field(gt=0)]
    refused_seconds: Annotated[float, Field(gt=0)] = 600.0
    poll_seconds: Annotated[float, Field(gt=0)] = 10.0
