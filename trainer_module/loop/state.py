"""What a training knows beside its variables, as part of every checkpoint."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

import tensorflow as tf


@dataclass(eq=False)
class State(tf.train.experimental.PythonState):
    """What is no variable; JSON in every checkpoint.

    Attributes:
      epochs: how many are trained and evaluated.
      stopped: whether early stopping has ended the training.
      trained: metrics of the steps of the epoch that is being evaluated.
      metrics: of the last epoch that was evaluated.
      best_epoch: of those from 0 on the one whose eval loss is the least; None: early stopping
        does not look for it.
      best_metrics: of that epoch.
      usage: what `Usage` has measured so far.
    """

    epochs: int = 0
    stopped: bool = False
    trained: dict[str, float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    best_epoch: int | None = None
    best_metrics: dict[str, float] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)

    def serialize(self) -> str:
        """The fields as JSON."""
        return json.dumps(asdict(self))

    def deserialize(self, string_value: bytes) -> None:
        """Takes the fields from JSON."""
        for name, value in json.loads(string_value).items():
            setattr(self, name, value)
