"""Settings of VertexPusher; the pipeline puts them into `custom_config`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from core.settings import Section

ENDPOINT_KEY = "endpoint"
"""Key of the settings in `custom_config`; the value is `EndpointSettings.model_dump()`."""


class EndpointSettings(Section):
    """The endpoint of a model, and its server.

    Attributes:
      project, region: project and region of Google Cloud.
      endpoint: display name of the endpoint, which serves no other model.
      model_name: name of the model in TensorFlow Serving, and start of its resource's name.
      image: image of TensorFlow Serving.
      machine_type: machine type of the server.
      poll_seconds: seconds between two requests for the state of an operation.
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
        """The location of the endpoint and the model."""
        return f"projects/{self.project}/locations/{self.region}"
