"""Find contradictions between the settings of a training, without TensorFlow and before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_module.settings import Training

NO_SERVERS = "training.strategy: parameter_server needs a TF_CONFIG with chief, worker and ps tasks"

ONE_PROCESS = ("auto", "one_device", "mirrored", "central_storage", "tpu")
"""Strategies of a single process; the others need a cluster."""

COMPILED = ("auto", "one_device", "tpu")
"""Strategies whose step XLA can compile: all variables of the step are on its device."""

_USE_ALL_DEVICES = ("multi_worker_mirrored", "parameter_server", "tpu")
"""Strategies that train on every device of a process."""

_CANNOT_SCALE_THE_LOSS = ("central_storage", "parameter_server", "tpu")
"""Strategies with one copy of a variable for all replicas; Keras unscales once for each replica."""


def of_one_process(training: Training, gpus: int) -> str:
    """Return the strategy that `auto` means in a process without a cluster and without a TPU."""
    return "mirrored" if (training.devices or gpus) > 1 else "one_device"


def problem(training: Training, strategy: str, reason: str = "") -> str | None:
    """Return one line about the first setting that `strategy` does not support; None if there is
    none.

    Args:
      training: the settings; `training.strategy` may be `auto`.
      strategy: the strategy to check the settings for.
      reason: the reason why `auto` means this strategy, for the message.
    """
    named = f"{strategy} ({reason})" if reason else strategy
    devices = training.devices or 1
    if strategy == "one_device" and devices > 1:
        return (
            f"{devices} devices need training.strategy: mirrored or auto; one_device uses only one"
        )
    if training.workers > 1 and strategy in ONE_PROCESS:
        return (
            f"{training.workers} workers need training.strategy: multi_worker_mirrored or "
            f"parameter_server; {named} trains in one process"
        )
    if training.devices is not None and strategy in _USE_ALL_DEVICES:
        instead = "" if strategy == "tpu" else ", and set CUDA_VISIBLE_DEVICES to the GPUs to use"
        return (
            f"training.devices: {devices}, but {named} trains on all devices of a process; "
            f"remove training.devices{instead}"
        )
    if training.jit_compile and (strategy not in COMPILED or (strategy != "tpu" and devices > 1)):
        return (
            f"training.jit_compile: true compiles the step of a single device, not of {named}; set "
            "training.strategy: one_device (on a TPU every step is compiled without this setting)"
        )
    if training.mixed_precision == "float16" and strategy in _CANNOT_SCALE_THE_LOSS:
        return (
            "training.mixed_precision: float16 needs a scaled loss, which Keras does not support "
            f"under {named}; set bfloat16"
        )
    if training.warm_start and training.hyperparameters.get("compressed"):
        return (
            "training.warm_start: true needs a base model with all bits of its weights; unset "
            "training.hyperparameters.compressed"
        )
    if training.profile_steps and training.profile_steps[0] > training.profile_steps[1]:
        first, last = training.profile_steps
        return f"training.profile_steps: [{first}, {last}] ends before it begins"
    return None


def cluster_problem(strategy: str, processes: int, has_servers: bool) -> str | None:
    """Return one line if `strategy` does not fit the cluster of TF_CONFIG; None if it does.

    Args:
      strategy: the strategy; `auto` fits every cluster.
      processes: the number of processes in the cluster.
      has_servers: whether some of them are parameter servers.
    """
    if strategy in ONE_PROCESS and strategy != "auto":
        return (
            f"training.strategy: {strategy} trains in one process, but TF_CONFIG names a cluster "
            f"of {processes}; set multi_worker_mirrored or parameter_server"
        )
    if strategy == "multi_worker_mirrored" and has_servers:
        # With parameter servers, workers only execute requests of the coordinator. A collective
        # operation would wait for the workers forever.
        return (
            "training.strategy: multi_worker_mirrored, but TF_CONFIG names parameter servers; set "
            "parameter_server, or leave the ps tasks out"
        )
    if strategy == "parameter_server" and not has_servers:
        return NO_SERVERS
    return None


def too_few_gpus(training: Training, gpus: int) -> str | None:
    """Return one line if `training.devices` exceeds the GPUs of a machine; None otherwise.

    On a machine without GPUs the CPU is split into any number of logical devices.
    """
    if gpus and (training.devices or 1) > gpus:
        return f"training.devices: {training.devices} devices, but only {gpus} GPUs are available"
    return None
