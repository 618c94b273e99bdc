"""Settings of a CustomJob beside the training; the pipeline puts them into `custom_config`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import Section

CUSTOM_JOB_KEY = "custom_job"
"""Where in the Trainer's `custom_config` they are, as `CustomJobSettings.model_dump()`."""


class CustomJobSettings(Section):
    """Where the replicas of a training on Vertex AI run, and on what.

    Attributes:
      project, region: of Google Cloud.
      display_name: of the CustomJob.
      image: of every replica; it holds this package.
      machine_type: of every replica.
      gpus: of each replica that computes gradients.
      gpu_type: accelerator type, `NVIDIA_TESLA_T4`.
      service_account: that the replicas run as; None: the project's default.
      network: VPC that the replicas are peered with; None: none.
      timeout_seconds: after which a CustomJob is ended.
      poll_seconds: between two looks at the CustomJob.
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
        """The location that the CustomJob belongs to."""
        return f"projects/{self.project}/locations/{self.region}"
