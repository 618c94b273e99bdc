"""`training.strategy` -> tf.distribute.Strategy."""

from __future__ import annotations

import tensorflow as tf
from absl import logging


def make_strategy(name: str, devices: int | None = None) -> tf.distribute.Strategy:
    """Builds the strategy; call it before any other TensorFlow op.

    Args:
      name: `auto`, `one_device` or `mirrored`. `auto` takes `mirrored` when there are several
        GPUs or `devices` asks for several replicas, else `one_device`.
      devices: replicas wanted; None: every GPU, or the one CPU. Without GPUs the CPU is split
        into that many logical devices.

    Raises:
      ValueError: the name is unknown or there are fewer devices than asked for.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if name == "auto":
        name = "mirrored" if (devices or len(gpus)) > 1 else "one_device"
        reason = f"auto: {len(gpus)} GPUs, training.devices {devices or 'not set'}"
    else:
        reason = "as set"
    if gpus and devices and devices > len(gpus):
        raise ValueError(f"training.devices: {devices} asked for, {len(gpus)} GPUs are there")
    kind = "GPU" if gpus else "CPU"
    if name == "one_device":
        strategy: tf.distribute.Strategy = tf.distribute.OneDeviceStrategy(f"/{kind}:0")
    elif name == "mirrored":
        replicas = devices or len(gpus) or 1
        if not gpus and replicas > 1:
            _split_cpu(replicas)
        strategy = tf.distribute.MirroredStrategy([f"/{kind}:{i}" for i in range(replicas)])
    else:
        raise ValueError(f"training.strategy: {name!r} is none of auto, one_device, mirrored")
    logging.info("Strategy %s (%s) on %d x %s", name, reason, strategy.num_replicas_in_sync, kind)
    return strategy


def _split_cpu(devices: int) -> None:
    """Makes the CPU several logical devices; a no-op when it is split that way already."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    existing = tf.config.get_logical_device_configuration(cpu)
    if existing is None or len(existing) != devices:
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(devices)]
        )
