"""The state of a training that is not in its variables, as part of every checkpoint."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import tensorflow as tf


@dataclass(eq=False)
class State(tf.train.experimental.PythonState):
    """The Python values of a training, stored as JSON in every checkpoint.

    Attributes:
      epochs: number of epochs that are trained and evaluated.
      stopped: whether early stopping has ended the training.
      trained: metrics of the training steps of the epoch that is being evaluated.
      metrics: metrics of the last epoch that was evaluated.
      best_epoch: the epoch, from 0, with the lowest eval loss; None without early stopping.
      best_metrics: metrics of that epoch.
      usage: the measurements of `Usage` so far.
      curve: the points of `Curve` so far.
      history: the metrics of each epoch that was evaluated.
      global_batch: Examples in a step, over all replicas; 0 if it is unknown.
      settings: key -> JSON value of the settings that define the training.
    """

    epochs: int = 0
    stopped: bool = False
    trained: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    best_epoch: int | None = None
    best_metrics: dict[str, float] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    curve: list[dict[str, float]] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    global_batch: int = 0
    settings: dict[str, Any] = field(default_factory=dict)

    def serialize(self) -> str:
        """Return the fields as JSON."""
        return json.dumps(asdict(self))

    def deserialize(self, string_value: bytes) -> None:
        """Set the fields from JSON."""
        for name, value in json.loads(string_value).items():
            setattr(self, name, value)
