"""DeployedBaseline: the model that an endpoint of Vertex AI serves, as the baseline of a candidate.

`@component` reads the annotations, which `from __future__ import annotations` would make strings.
"""

import json

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types import standard_artifacts

from components.baseline import provide_baseline
from platforms.vertex.pusher import Endpoint


@component
def DeployedBaseline(
    endpoint: Parameter[str],
    model: OutputArtifact[standard_artifacts.Model],
    candidate: InputArtifact[standard_artifacts.Model] = None,  # type: ignore[assignment]
) -> None:
    """The model that an endpoint serves, and that is not the candidate itself -> `model`.

    It must not be cached, because its output depends on the endpoint.

    Args:
      endpoint: the arguments of `Endpoint.of` as JSON.
      model: a copy of the served model, or a record that there is none.
      candidate: the model that is compared with the baseline.

    Raises:
      InputError: the served model is damaged, or Vertex AI refuses a setting.
    """
    provide_baseline(Endpoint.of(**json.loads(endpoint)), model, candidate)
