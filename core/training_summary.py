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
