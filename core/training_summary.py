"""The summary of a training: its configuration, durations, resources, metrics and curve.

The trainer writes it to its `model_run`; the report and the outcome of a run read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

SUMMARY_FILE = "training.json"
"""The file in `model_run` with the summary."""
_CURVE_PARTS = 32
"""Maximum number of values of a `loss_curve`."""


def write_summary(model_run: str, figures: Mapping[str, Any]) -> None:
    """Write the summary to the folder `model_run`, local or remote, which is created.

    Args:
      model_run: the folder.
      figures: the summary: JSON values, as `trainer_module.summary.figures` returns them.

    Raises:
      ValueError: a figure is NaN or infinite.
      tensorflow.errors.OpError: the file cannot be written.
    """
    import tensorflow as tf

    text = json.dumps(figures, indent=1, allow_nan=False)
    tf.io.gfile.makedirs(model_run)
    with tf.io.gfile.GFile(os.path.join(model_run, SUMMARY_FILE), "w") as stream:
        stream.write(text)


def read_summary(model_run: str) -> dict[str, Any]:
    """Return the figures of the summary in the folder `model_run`, local or remote.

    Raises:
      tensorflow.errors.OpError: the file cannot be read. If it is missing, the error is a
        NotFoundError.
      ValueError: the file does not contain JSON.
    """
    import tensorflow as tf

    with tf.io.gfile.GFile(os.path.join(model_run, SUMMARY_FILE)) as stream:
        return dict(json.loads(stream.read()))


def loss_curve(figures: Mapping[str, Any]) -> list[float]:
    """Return the mean loss of at most 32 equal parts of a training, in their order.

    Args:
      figures: the summary of the training; without a curve the result is empty.
    """
    points = figures.get("curve", [])
    parts = min(_CURVE_PARTS, len(points))
    losses = []
    for part in range(parts):
        here = points[len(points) * part // parts : len(points) * (part + 1) // parts]
        steps = sum(point["steps"] for point in here)
        losses.append(sum(point["loss"] * point["steps"] for point in here) / steps)
    return losses
