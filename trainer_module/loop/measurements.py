"""The speed, the resource usage and the curve of a training, and the file training.json."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf
import tf_keras
from absl import logging

from trainer_module.cluster.resources import peak_rss
from trainer_module.loop.callbacks import StepCallback
from trainer_module.settings import SUMMARY_FILE, TrainingJob

if TYPE_CHECKING:
    from trainer_module.cluster.tf_config import Cluster
    from trainer_module.inputs.dataset import Inputs

MAX_POINTS = 256
"""The maximum number of points of a curve, besides one at the end of each epoch."""


class Measurements(StepCallback):
    """A callback that measures the time and the CPU time of the training steps.

    Evaluations are not measured. CPU utilisation is the CPU time of this process divided by the
    wall time of the CPUs on which it may run.

    Args:
      global_batch: Examples a step, over all replicas.
      first_step: steps done before a resume.
      so_far: the measurements of these steps; updated, because it is part of the checkpoints.
    """

    def __init__(self, global_batch: int, first_step: int, so_far: dict[str, Any]):
        super().__init__(first_step)
        self._global_batch = global_batch
        self._cpus = len(os.sched_getaffinity(0))
        self._so_far = so_far
        self._seconds_per_epoch: list[float] = so_far.setdefault("seconds_per_epoch", [])
        so_far.setdefault("steps", 0)
        so_far.setdefault("cpu_seconds", 0.0)
        self._trains = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        # A resumed training is in an epoch that already has an entry.
        if epoch == len(self._seconds_per_epoch):
            self._seconds_per_epoch.append(0.0)
        self._trains = True
        self._since, self._cpu_since = time.perf_counter(), time.process_time()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        before = self.step
        super().on_train_batch_end(batch, logs)
        self._so_far["steps"] += self.step - before
        self._measure()

    def on_test_begin(self, logs: Any = None) -> None:
        # Under parameter servers the last steps of an epoch end after the last hook of a batch.
        if self._trains:
            self._measure()
            self._trains = False

    def summary(self) -> dict[str, Any]:
        seconds, steps = sum(self._seconds_per_epoch), self._so_far["steps"]
        return {
            "seconds_per_epoch": [round(epoch, 3) for epoch in self._seconds_per_epoch],
            "steps": self.step,
            "step_seconds": seconds / max(1, steps),
            "examples_per_second": steps * self._global_batch / max(1e-9, seconds),
            "cpu_utilisation": self._so_far["cpu_seconds"] / max(1e-9, seconds * self._cpus),
            "cpus": self._cpus,
            "peak_rss_bytes": peak_rss(),
        }

    def _measure(self) -> None:
        now, cpu_now = time.perf_counter(), time.process_time()
        self._seconds_per_epoch[-1] += now - self._since
        self._so_far["cpu_seconds"] += cpu_now - self._cpu_since
        self._since, self._cpu_since = now, cpu_now


class TrainingCurve(StepCallback):
    """A callback that records the loss and the accuracy of the training steps.

    A point has the last of its steps, their number, and their mean loss and accuracy. The values
    are those of this process's first replica, because a sum over all replicas would take longer
    than a small step.

    Args:
      first_step: steps done before a resume.
      total_steps: steps of the whole training.
      points: the points of the steps before a resume; updated, because it is part of the
        checkpoints.
    """

    def __init__(self, first_step: int, total_steps: int, points: list[dict[str, float]]):
        super().__init__(first_step)
        self._points = points
        self._size = -(-total_steps // MAX_POINTS)
        self._reset()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        before = self.step
        super().on_train_batch_end(batch, logs)
        # With steps_per_execution the logs are those of the last step; it represents them all.
        for name in self._sums:
            self._sums[name] += float(logs[name]) * (self.step - before)
        if self.step - self._since >= self._size:
            self._add_point()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        if self.step > self._since:
            self._add_point()

    def _add_point(self) -> None:
        steps = self.step - self._since
        means = {name: total / steps for name, total in self._sums.items()}
        self._points.append({"step": self.step, "steps": steps, **means})
        self._reset()

    def _reset(self) -> None:
        self._since = self.step
        self._sums = {"loss": 0.0, "accuracy": 0.0}


def configuration(
    job: TrainingJob, inputs: Inputs, model: tf_keras.Model, cluster: Cluster | None
) -> dict[str, Any]:
    """Return what training.json contains about the model, the data and the devices."""
    strategy = model.distribute_strategy
    devices = map(tf.DeviceSpec.from_string, strategy.extended.worker_devices)
    return {
        "model": job.training.model,
        "strategy": type(strategy).__name__,
        "processes": cluster.processes if cluster else 1,
        "devices": [f"{device.device_type}:{device.device_index}" for device in devices],
        "replicas": strategy.num_replicas_in_sync,
        "batch_size_per_replica": job.training.batch_size_per_replica,
        "examples": inputs.train.examples,
        "epochs": job.training.epochs,
        "steps_per_epoch": inputs.steps,
        "parameter_server_bytes": _bytes_on_servers(model),
    }


def write_summary(job: TrainingJob, figures: Mapping[str, Any]) -> None:
    """Write training.json. An error is only logged, because the model must still be exported."""
    file = os.path.join(job.model_run_dir, SUMMARY_FILE)
    try:
        tf.io.gfile.makedirs(job.model_run_dir)
        with tf.io.gfile.GFile(file, "w") as stream:
            stream.write(json.dumps(figures, indent=1))
    except tf.errors.OpError as error:
        logging.warning("%s cannot be written: %s; its content is %s", file, error, figures)


def _bytes_on_servers(model: tf_keras.Model) -> list[int]:
    """Return the bytes of the model's and the optimizer's variables on each parameter server."""
    parts = {
        id(part): part
        for variable in (*model.variables, *model.optimizer.variables())
        for part in getattr(variable, "variables", [variable])
    }
    held: dict[int, int] = {}
    for part in parts.values():
        device = tf.DeviceSpec.from_string(part.device)
        if device.job == "ps":
            size = part.shape.num_elements() * part.dtype.size
            held[device.task] = held.get(device.task, 0) + size
    return [held[task] for task in sorted(held)]
