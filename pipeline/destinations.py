"""The destinations of a push: a row for each value of `push.destination`; imports no TFX."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from core.errors import ConfigError
from pipeline.config import PipelineConfig


class Row(NamedTuple):
    """The properties of a destination that are known without a connection to it."""

    kind: str
    """Dotted name of the subclass of `components.destination.Destination`."""
    arguments: Callable[[PipelineConfig], dict[str, Any]]
    """The function that returns the arguments of its constructor. A compiled pipeline contains them
    as JSON."""
    targets: tuple[str, ...]
    """The platforms that can push to it."""
    paths: tuple[str, ...] = ()
    """The settings with the paths that a push writes."""
    required: Mapping[str, str] = {}
    """Setting that it requires -> description of the value, for the error."""


_FOLDER = Row(
    "components.serving_folder.ServingFolder",
    lambda config: {"serving": config.paths.serving},
    ("local", "kubeflow", "vertex"),
    paths=("paths.serving",),
)
DESTINATIONS = {
    "filesystem": _FOLDER,
    "vertex": Row(
        "platforms.vertex.pusher.Endpoint",
        lambda config: {"vertex": config.vertex.model_dump(), "name": config.name},
        ("vertex",),
        required={
            "vertex.serving_image": "an image of TensorFlow Serving that is not older than the "
            "TensorFlow of the training, see docs/how-to/vertex.md"
        },
    ),
    # The baseline and a warm start read paths.serving, where earlier runs may have pushed models.
    "none": _FOLDER,
}


def destination_json(config: PipelineConfig) -> str:
    """Return the destination of a push, as the JSON of `components.destination.make_destination`.

    With `push.destination: none` it is the folder of the baseline.
    """
    row = DESTINATIONS[config.push.destination]
    return json.dumps([row.kind, row.arguments(config)])


def destination_paths(config: PipelineConfig) -> dict[str, str]:
    """Return setting -> path of everything that the destination of a push reads and writes."""
    row = DESTINATIONS[config.push.destination]
    return {key: attrgetter(key)(config) for key in row.paths}


def check_mounted(config: PipelineConfig) -> None:
    """Check that this machine mounts the volume of the cluster that has the pushed models.

    Without the volume its folder is missing, which is not the same as a folder without models.

    Raises:
      ConfigError: a path of the destination is on `kubeflow.volume`, and there is no such mount.
    """
    volume = config.kubeflow.volume
    if volume is None or os.path.isdir(volume.mount):
        return
    for key, path in destination_paths(config).items():
        if f"{path}/".startswith(f"{volume.mount}/"):
            raise ConfigError(
                f"{key}: {path} is on kubeflow.volume, and this machine has no folder "
                f"{volume.mount}; run the command in a pod with the volume, see "
                "docs/how-to/kubeflow.md"
            )
