"""Settings of VertexPusher; the pipeline puts them into `custom_config`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import Section

ENDPOINT_KEY = "endpoint"
"""Where in `custom_config` they are, as `EndpointSettings.model_dump()`."""


class EndpointSettings(Section):
    """Where a model is deployed, and what serves it.

    Attributes:
      project, region: of Google Cloud.
      endpoint: display name of the endpoint, which serves nothing else.
      model_name: that TensorFlow Serving knows the model by; the start of its resource's name.
      image: TensorFlow Serving.
      machine_type: of the machine that serves.
      poll_seconds: between two looks at what Vertex AI does.
    """

    project: str
    region: str
    endpoint: Annotated[str, Field(min_length=1)]
    model_name: Annotated[str, Field(pattern="^[a-z][a-z0-9-]*$")]
    image: Annotated[str, Field(min_length=1)]
    machine_type: str
    poll_seconds: Annotated[float, Field(gt=0)] = 10.0

    @property
    def parent(self) -> str:
        """The location that endpoint and model belong to."""
        return f"projects/{self.project}/locations/{self.region}"
