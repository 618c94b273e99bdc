"""`training.strategy` -> tf.distribute.Strategy, by the devices and the cluster of this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from absl import logging
from tensorflow.python.data.ops import multi_device_iterator_ops

from core.errors import cause
from core.machine import cores
from examples.tfrecords import without_autotune
from trainer_module.cluster.resources import no_tpu_message, tpu_address
from trainer_module.cluster.tf_config import Cluster
from trainer_module.settings import ONE_PROCESS, Training

_create_device_dataset = multi_device_iterator_ops._create_device_dataset
_MIN_SHARD_BYTES = 256 << 10
"""Minimum bytes of a shard of a variable; smaller shards cost more than they save."""

_MIN_ROWS = 4096
"""Minimum rows of a sharded table. Smaller matrices are whole: an LSTM cannot read shards."""
_MIN_THREADS = 4
"""Minimum inter-op threads of a server.

On a single core TensorFlow's default is one thread. A step that waits for its input would occupy
this thread, on which the input is computed: a deadlock.
"""


def make_strategy(
    training: Training, cluster: Cluster | None
) -> tuple[tf.distribute.Strategy, str]:
    """Patch TensorFlow for strategies; return the strategy and the reason for it.

    Call this at the start of a process, before any other operation of TensorFlow.

    Args:
      training: the settings; their `strategy` may be `auto`.
      cluster: the cluster of this process; None: it trains alone.

    Raises:
      ValueError: the strategy contradicts the cluster, the settings or the devices of this machine,
        or no TPU is reachable.
      RuntimeError: this process has already executed an operation of TensorFlow, so the CPU cannot
        be split, or collective operations cannot be set up.
    """
    patch_device_iterators()
    name, reason = _choose(training, cluster)
    _check_cluster(name, cluster)
    if training.strategy == "auto":
        training.check_strategy(name, reason)
    if cluster:
        # A timer could not log later: MultiWorkerMirroredStrategy holds the GIL while it connects.
        logging.info("Connecting to all tasks of %s", cluster.spec)
    strategy = _MAKERS[name](training, cluster)
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    device = "TPU" if name == "tpu" else kind
    ours = f", {cluster.name} of {cluster.processes} processes" if cluster else ""
    replicas = strategy.num_replicas_in_sync
    logging.info("Strategy %s (%s): %d replicas, %s%s", name, reason, replicas, device, ours)
    return strategy, reason


def serve(cluster: Cluster) -> None:
    """Run the server of a parameter server or of one of its workers; never return.

    Args:
      cluster: the cluster, with the task of this process.
    """
    _let_grpc_wait_for_restarted_peers()
    threads = max(_MIN_THREADS, cores())
    server = tf.distribute.Server(
        tf.train.ClusterSpec(cluster.spec),
        job_name=cluster.task_type,
        task_index=cluster.task_index,
        protocol="grpc",
        config=tf.compat.v1.ConfigProto(inter_op_parallelism_threads=threads),
    )
    logging.info("%s serves at %s", cluster.name, server.target)
    server.join()


def _choose(training: Training, cluster: Cluster | None) -> tuple[str, str]:
    """Return the name of the strategy, and the reason for it."""
    if training.strategy != "auto":
        return training.strategy, "as set"
    address = tpu_address(training, os.environ)
    if address is not None:
        return "tpu", f"auto: {address}"
    if cluster is None:
        return training.resolve_auto(len(tf.config.list_physical_devices("GPU")))
    if cluster.has_parameter_servers:
        return "parameter_server", "auto: TF_CONFIG names parameter servers"
    return "multi_worker_mirrored", "auto: TF_CONFIG names several workers"


def _check_cluster(name: str, cluster: Cluster | None) -> None:
    """Check that the strategy `name` fits the cluster.

    Raises:
      ValueError: it does not fit.
    """
    has_servers = cluster is not None and cluster.has_parameter_servers
    if name == "parameter_server" and not has_servers:
        raise ValueError(
            "training.strategy: parameter_server needs a TF_CONFIG with chief, worker and ps tasks"
        )
    if cluster is not None and name in ONE_PROCESS:
        raise ValueError(
            f"training.strategy: {name} trains in one process, but TF_CONFIG names a cluster of "
            f"{cluster.processes}; set multi_worker_mirrored or parameter_server"
        )
    if name == "multi_worker_mirrored" and has_servers:
        # With parameter servers, workers only execute requests of the coordinator. A collective
        # operation would wait for the workers forever.
        raise ValueError(
            "training.strategy: multi_worker_mirrored, but TF_CONFIG names parameter servers; set "
            "parameter_server, or leave the ps tasks out"
        )


def _devices(training: Training) -> list[str]:
    """Return the devices of this process; without GPUs split the CPU into `training.devices`."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        training.check_gpus(len(gpus))
        return [f"GPU:{i}" for i in range(training.devices or len(gpus))]
    wanted = training.devices or 1
    cpu = tf.config.list_physical_devices("CPU")[0]
    if len(tf.config.get_logical_device_configuration(cpu) or [None]) != wanted:
        split = [tf.config.LogicalDeviceConfiguration()] * wanted
        tf.config.set_logical_device_configuration(cpu, split)
    return [f"CPU:{i}" for i in range(wanted)]


def _parameter_server(training: Training, cluster: Cluster | None) -> tf.distribute.Strategy:
    assert cluster is not None
    _let_grpc_wait_for_restarted_peers()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    by_size = tf.distribute.experimental.partitioners.MinSizePartitioner(
        min_shard_bytes=_MIN_SHARD_BYTES, max_shards=len(cluster.spec["ps"])
    )

    def only_tables(shape: tf.TensorShape, dtype: tf.DType, axis: int = 0) -> list[int]:
        whole = [1] * len(shape)
        return by_size(shape, dtype, axis) if whole and shape[0] >= _MIN_ROWS else whole

    return tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=only_tables)


_MAKERS: dict[str, Callable[[Training, Cluster | None], tf.distribute.Strategy]] = {
    "one_device": lambda training, _: tf.distribute.OneDeviceStrategy(f"/{_devices(training)[0]}"),
    "mirrored": lambda training, _: tf.distribute.MirroredStrategy(_devices(training)),
    "central_storage": lambda training, _: tf.distribute.experimental.CentralStorageStrategy(
        compute_devices=_devices(training), parameter_device="CPU:0"
    ),
    "multi_worker_mirrored": lambda *_: tf.distribute.MultiWorkerMirroredStrategy(),
    "parameter_server": _parameter_server,
    "tpu": lambda training, _: tf.distribute.TPUStrategy(
        _connect_to_tpu(tpu_address(training, os.environ))
    ),
}


def _connect_to_tpu(address: str | None) -> tf.distribute.cluster_resolver.TPUClusterResolver:
    """Connect to the TPU and initialise it, unless an earlier call has done so.

    Raises:
      ValueError: no TPU is reachable.
    """
    if address is None:
        raise ValueError(no_tpu_message())
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
        if not tf.config.list_logical_devices("TPU"):
            if address != "local":
                tf.config.experimental_connect_to_cluster(resolver)
            tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ValueError, RuntimeError, OSError) as error:
        raise ValueError(
            no_tpu_message(f"no TPU is reachable at {address!r} (training.tpu): {cause(error)}")
        ) from error
    return resolver


def _let_grpc_wait_for_restarted_peers() -> None:
    # TensorFlow's guide to parameter server training requires this. Without it a call to a task
    # that is being restarted fails at once.
    os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")


def patch_device_iterators() -> None:
    """Disable autotuning for the iterators that strategies create for the devices of a process.

    A strategy creates an additional iterator for each device. Its dataset has none of the options
    of the dataset that a caller distributes, and TensorFlow creates it with a private function
    without a parameter for options (2.16 and 2.21). So the end of such an iterator would wait for
    its tuning thread, see `without_autotune`. A second call changes nothing.
    """
    multi_device_iterator_ops._create_device_dataset = _untuned_device_dataset


def _untuned_device_dataset(*arguments: Any) -> tf.data.Dataset:
    return without_autotune(_create_device_dataset(*arguments))
