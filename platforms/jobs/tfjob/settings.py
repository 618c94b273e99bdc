"""What a TFJob is told beside the training itself; the pipeline puts it into `custom_config`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import Section

TFJOB_KEY = "tfjob"
"""Where in the Trainer's `custom_config` the settings are, as `TFJobSettings.model_dump()`."""


class TFJobSettings(Section):
    """Where the pods of a training run, and on what.

    Attributes:
      image: of every pod; it holds this package.
      namespace: of the TFJob and its pods.
      service_account: that the pods run as; None: the namespace's default.
      cpu: cores of each pod; None: what the cluster gives, like the next one.
      memory: of each pod, a Kubernetes quantity.
      gpus: of each pod that computes gradients.
      gpu_type: resource name of the GPUs; None: `nvidia.com/gpu`.
      node_selector: of the pods.
      tolerations: of the pods, Kubernetes tolerations.
      volume_claim: a PersistentVolumeClaim that the pods mount; None: none.
      volume_mount: where they mount it.
      timeout_seconds: after which a TFJob is ended.
      refused_seconds: after which it is ended if Kubernetes refuses its pods all that time.
      poll_seconds: between two looks at the TFJob.
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
