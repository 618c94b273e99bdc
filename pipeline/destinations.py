"""The destinations of a push: a row for each value of `push.destination`; imports no TFX."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipeline.config import PipelineConfig


class Row(NamedTuple):
    kind: str
    """Dotted name of the subclass of `components.pusher.Destination`."""
    arguments: Callable[[PipelineConfig], dict[str, Any]]
    """Returns the arguments of its constructor, which a compiled pipeline contains as JSON."""
    targets: tuple[str, ...]
    """The platforms that can push there."""
    required: Mapping[str, str] = {}
    """Setting that it requires -> what to set."""


_FOLDER = Row(
    "components.pusher.ServingFolder",
    lambda config: {"serving": config.paths.serving},
    ("local", "kubeflow", "vertex"),
)
DESTINATIONS = {
    "filesystem": _FOLDER,
    "vertex": Row(
        "platforms.vertex.pusher.Endpoint",
        lambda config: {"vertex": config.vertex.model_dump(), "name": config.name},
        ("vertex",),
        {
            "vertex.serving_image": "an image of TensorFlow Serving that is not older than the "
            "TensorFlow of the training, see docs/how-to/vertex.md"
        },
    ),
    # The baseline and a warm start read paths.serving, where earlier runs may have pushed models.
    "none": _FOLDER,
}


def destination_of(config: PipelineConfig) -> str:
    """Return the destination of a push as the JSON of `components.pusher.make_destination`."""
    row = DESTINATIONS[config.push.destination]
    return json.dumps([row.kind, row.arguments(config)])
