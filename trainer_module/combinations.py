"""Which settings of a training contradict each other, found without TensorFlow and before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer_module.settings import Training

ONE_PROCESS = ("auto", "one_device", "mirrored", "central_storage", "tpu")
"""Strategies of a single process; the others need a cluster."""

COMPILED = ("auto", "one_device", "tpu")
"""Strategies whose step XLA can compile: it reaches no variable on another device."""

_TAKE_ALL_DEVICES = ("multi_worker_mirrored", "parameter_server", "tpu")
"""Strategies of TensorFlow that train on every device of a process."""

_CANNOT_SCALE_THE_LOSS = ("central_storage", "parameter_server", "tpu")
"""Keras unscales gradients once for each replica, where these keep one variable for all of them."""


def of_one_process(training: Training, gpus: int) -> str:
    """The strategy that `auto` is in a process without a cluster and without a TPU."""
    return "mirrored" if (training.devices or gpus) > 1 else "one_device"


def problem(training: Training, strategy: str, reason: str = "") -> str | None:
    """What makes the settings impossible under `strategy`, in one line; None: nothing.

    Args:
      training: the settings; `training.strategy` may be `auto`.
      strategy: what they are checked for.
      reason: why `auto` is that strategy, for the line.
    """
    named = f"{strategy} ({reason})" if reason else strategy
    devices = training.devices or 1
    if strategy == "one_device" and devices > 1:
        return f"{devices} devices need training.strategy: mirrored (or auto), one_device uses one"
    if training.workers > 1 and strategy in ONE_PROCESS:
        return (
            f"{training.workers} workers need training.strategy: multi_worker_mirrored or "
            f"parameter_server, {named} trains in one process"
        )
    if training.devices is not None and strategy in _TAKE_ALL_DEVICES:
        instead = "" if strategy == "tpu" else ", and CUDA_VISIBLE_DEVICES to what it shall take"
        return (
            f"training.devices: {devices}, but {named} trains on all devices of a process; "
            f"leave devices out{instead}"
        )
    if training.jit_compile and (strategy not in COMPILED or (strategy != "tpu" and devices > 1)):
        return (
            f"training.jit_compile: true compiles the step of a single device, not of {named}; set "
            "training.strategy: one_device (a TPU's steps are compiled as they are)"
        )
    if training.mixed_precision == "float16" and strategy in _CANNOT_SCALE_THE_LOSS:
        return (
            "training.mixed_precision: float16 needs a scaled loss, which Keras does not support "
            f"under {named}; set bfloat16"
        )
    if training.profile_steps and training.profile_steps[0] > training.profile_steps[1]:
        first, last = training.profile_steps
        return f"training.profile_steps: [{first}, {last}] ends before it begins"
    return None


def too_few_gpus(training: Training, gpus: int) -> str | None:
    """The same of a machine with `gpus` GPUs; without any, the CPU is split."""
    if gpus and (training.devices or 1) > gpus:
        return f"training.devices: {training.devices} asked for, {gpus} GPUs are there"
    return None
