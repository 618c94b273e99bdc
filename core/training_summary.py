"""The summary of a training: its configuration, durations, resources, metrics and curve.

The trainer writes it to its `model_run`; the report and the outcome of a run read it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from core.records import known_fields

SUMMARY_FILE = "training.json"
"""The file in `model_run` with the summary."""
_CURVE_PARTS = 32
"""Maximum number of values of a loss curve."""


@dataclass(frozen=True)
class Measured:
    """The time and the resources of the training steps, without the evaluations.

    Attributes:
      seconds_per_epoch: the seconds of each epoch.
      steps: the number of steps over all epochs.
      step_seconds: the mean seconds of a step.
      examples_per_second: the mean number of Examples in a second.
      cpu_utilisation: the fraction of all cores; None for a training of several processes. The
        summary of an earlier version may have None for any training.
      cpus: the number of CPU cores of a process.
      peak_rss_bytes: the peak resident memory of the process that writes the summary.
    """

    seconds_per_epoch: Sequence[float]
    steps: int
    step_seconds: float
    examples_per_second: float
    cpu_utilisation: float | None
    cpus: int
    peak_rss_bytes: int


@dataclass(frozen=True)
class EpochMetrics:
    """The means of an epoch over the train split, and after it over the eval split (`val_`)."""

    loss: float
    accuracy: float
    val_loss: float
    val_accuracy: float


@dataclass(frozen=True)
class CurvePoint:
    """A point of the curve of a training, which represents several steps.

    Attributes:
      step: the number of its last step, from 1.
      steps: the number of its steps.
      loss, accuracy: the means over the Examples of the chief's first replica in these steps; under
        parameter servers over all Examples of these steps.
      learning_rate: the learning rate of the last step.
    """

    step: int
    steps: int
    loss: float
    accuracy: float
    learning_rate: float


@dataclass(frozen=True, kw_only=True)
class TrainingSummary:
    """The summary of a finished training.

    Attributes:
      strategy_reason: the reason for the strategy.
      model: the setting `training.model`.
      hyperparameters: all of the model, with its defaults and the values of a Tuner.
      learning_rate: the highest learning rate, for the batches of the training; None: unknown.
      strategy: the class of the strategy.
      processes: the number of processes.
      devices: the devices on which each process computes, such as `GPU:0`.
      replicas: the number of replicas.
      batch_size_per_replica: the number of Examples in a step of each replica.
      examples: the number of Examples in the train split.
      epochs: the number of trained epochs, which early stopping may have reduced.
      steps_per_epoch: the number of steps in an epoch.
      parameter_server_bytes: the bytes of the variables on each parameter server.
      prepare_seconds: the seconds from the creation of the strategy to the first step.
      measured: the time and the resources of the steps.
      seconds: the seconds of the preparation and of all steps.
      metrics: the metrics of the epoch that ended with the weights of the model.
      epoch_metrics: the metrics of each epoch.
      curve: the points of the curve; empty if the first replica had no Examples.
      skipped_warm_start: the reason why the training did not continue from the weights of the
        served model, as a clause; empty if it did, or if it should not.
      skipped_updates: the number of steps that changed no weight, because a gradient overflowed
        under float16.

    The files of early versions lack the attributes with a default.
    """

    strategy_reason: str = ""
    model: str
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    learning_rate: float | None = None
    strategy: str
    processes: int
    devices: Sequence[str] = ()
    replicas: int
    batch_size_per_replica: int
    examples: int
    epochs: int
    steps_per_epoch: int
    parameter_server_bytes: Sequence[int] = ()
    prepare_seconds: float
    measured: Measured
    seconds: float
    metrics: EpochMetrics
    epoch_metrics: Sequence[EpochMetrics] = ()
    curve: Sequence[CurvePoint] = ()
    skipped_warm_start: str = ""
    skipped_updates: int = 0

    def loss_curve(self) -> list[float]:
        """Return the mean loss of at most 32 equal parts of the training, in their order."""
        points = self.curve
        parts = min(_CURVE_PARTS, len(points))
        losses = []
        for part in range(parts):
            here = points[len(points) * part // parts : len(points) * (part + 1) // parts]
            steps = sum(point.steps for point in here)
            losses.append(sum(point.loss * point.steps for point in here) / steps)
        return losses

    def to_json(self) -> dict[str, Any]:
        """Return the content of SUMMARY_FILE, in which `measured` and `metrics` are no objects."""
        found = asdict(self)
        measured, metrics = found.pop("measured"), found.pop("metrics")
        return {**found, **measured, **metrics}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> TrainingSummary:
        """Return the summary that `to_json` converted.

        Args:
          stored: the result of `to_json`, of any version. Unknown keys are ignored.

        Raises:
          ValueError: a key is missing, or the record is no object of this form.
        """
        try:
            values = known_fields(cls, stored)
            epochs, points = stored.get("epoch_metrics", ()), stored.get("curve", ())
            values["measured"] = Measured(**known_fields(Measured, stored))
            values["metrics"] = EpochMetrics(**known_fields(EpochMetrics, stored))
            values["epoch_metrics"] = [
                EpochMetrics(**known_fields(EpochMetrics, each)) for each in epochs
            ]
            values["curve"] = [CurvePoint(**known_fields(CurvePoint, each)) for each in points]
            return cls(**values)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"{SUMMARY_FILE} is incomplete: {error}") from None


def write_summary(model_run: str, summary: TrainingSummary) -> None:
    """Write the summary to the folder `model_run`, local or remote, which is created.

    Raises:
      ValueError: a figure is NaN or infinite.
      tensorflow.errors.OpError: the file cannot be written.
    """
    import tensorflow as tf

    text = json.dumps(summary.to_json(), indent=1, allow_nan=False)
    tf.io.gfile.makedirs(model_run)
    with tf.io.gfile.GFile(os.path.join(model_run, SUMMARY_FILE), "w") as stream:
        stream.write(text)


def read_summary(model_run: str) -> TrainingSummary:
    """Return the summary in the folder `model_run`, local or remote.

    Raises:
      tensorflow.errors.OpError: the file cannot be read. If it is missing, the error is a
        NotFoundError.
      ValueError: the file is damaged.
    """
    import tensorflow as tf

    with tf.io.gfile.GFile(os.path.join(model_run, SUMMARY_FILE)) as stream:
        return TrainingSummary.from_json(json.loads(stream.read()))
