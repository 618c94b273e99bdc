"""The settings of a CustomJob, which the pipeline adds to the Trainer's `custom_config`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import Section

CUSTOM_JOB_KEY = "custom_job"
"""Key of the settings in `custom_config`; the value is `CustomJobSettings.model_dump()`."""


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
