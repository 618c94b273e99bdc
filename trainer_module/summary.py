"""The file training.json: the duration, resource usage and metrics of a training."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras
from absl import logging

from trainer_module.distribute.cluster import Cluster
from trainer_module.feeding.inputs import Inputs
from trainer_module.loop import schedule
from trainer_module.loop.usage import Usage
from trainer_module.settings import SUMMARY_FILE, TrainingJob


def figures(
    job: TrainingJob,
    inputs: Inputs,
    model: tf_keras.Model,
    cluster: Cluster | None,
    prepared_seconds: float,
    usage: Usage,
) -> dict[str, Any]:
    """Return the configuration, the duration and the resource usage of a training."""
    strategy = model.distribute_strategy
    found: dict[str, Any] = {
        "model": job.training.model,
        "strategy": type(strategy).__name__,
        "processes": cluster.processes if cluster else 1,
        "devices": _devices(strategy),
        "replicas": strategy.num_replicas_in_sync,
        "batch_size_per_replica": job.training.batch_size_per_replica,
        "examples": inputs.train.examples,
        "epochs": job.training.epochs,
        "steps_per_epoch": inputs.steps,
        "prepare_seconds": round(prepared_seconds, 3),
        "parameter_server_bytes": _bytes_on_servers(model),
        **usage.summary(),
    }
    found["seconds"] = round(prepared_seconds + sum(found["seconds_per_epoch"]), 3)
    return found


def with_rates(
    curve: Sequence[Mapping[str, float]], rate: schedule.WarmUp
) -> list[dict[str, float]]:
    """Return the points of the curve, each with the learning rate of its last step."""
    return [{**point, "learning_rate": float(rate(point["step"] - 1))} for point in curve]


def write_summary(job: TrainingJob, figures: Mapping[str, Any]) -> None:
    """Write training.json. An error is only logged, because the model must still be exported."""
    file = os.path.join(job.model_run_dir, SUMMARY_FILE)
    try:
        tf.io.gfile.makedirs(job.model_run_dir)
        with tf.io.gfile.GFile(file, "w") as stream:
            stream.write(json.dumps(figures, indent=1))
    except tf.errors.OpError as error:
        logging.warning("%s cannot be written: %s; its content is %s", file, error, figures)


def _devices(strategy: tf.distribute.Strategy) -> list[str]:
    """Return the devices on which one process of the strategy computes, such as `GPU:0`."""
    devices = map(tf.DeviceSpec.from_string, strategy.extended.worker_devices)
    return [f"{device.device_type}:{device.device_index}" for device in devices]


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
