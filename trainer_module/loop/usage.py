"""The speed and resource usage of a training, for TensorBoard and training.json."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil
import tensorflow as tf
from absl import logging

from trainer_module.loop.callbacks import StepCallback
from trainer_module.loop.gpu_usage import GpuSampler
from trainer_module.loop.memory import peak_rss

_SECONDS_BETWEEN_MEASUREMENTS = 5.0


class Usage(StepCallback):
    """A callback that measures step time, Examples a second, memory and utilisation in training.

    Evaluations are not measured. Every five seconds and at the end of an epoch the figures become
    TensorBoard scalars under `usage/`; `summary` returns them for the whole training. CPU
    utilisation is the CPU time of this process divided by the wall time of the CPUs on which it may
    run. GPU utilisation and memory are those of nvidia-smi, over all GPUs. Utilisations are in
    [0, 1], memory is in bytes.

    If a figure cannot be measured, or the log folder cannot be written to, the figure is missing
    and the training continues.
    """

    def __init__(
        self, log_dir: str | None, global_batch: int, first_step: int, so_far: dict[str, Any]
    ):
        """Create the callback for a new or a resumed training.

        Args:
          log_dir: the log folder of TensorBoard; None: no scalars are written.
          global_batch: Examples a step, over all replicas.
          first_step: steps done before a resume.
          so_far: the measurements of these steps; updated, because it is part of the checkpoints.
        """
        super().__init__(first_step)
        self._writer = _Writer(log_dir) if log_dir else None
        self._global_batch = global_batch
        self._cpus = len(os.sched_getaffinity(0))
        self._gpus = GpuSampler() if _has_gpu() else None
        self._gpu_samples_written = 0
        self._so_far = so_far
        self._seconds_per_epoch: list[float] = so_far.setdefault("seconds_per_epoch", [])
        so_far.setdefault("steps", 0)
        so_far.setdefault("cpu_seconds", 0.0)
        self._training = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._training = True
        # A resumed training is in an epoch that already has an entry.
        if epoch == len(self._seconds_per_epoch):
            self._seconds_per_epoch.append(0.0)
        self._open_window()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if time.perf_counter() - self._since >= _SECONDS_BETWEEN_MEASUREMENTS:
            self._close_window()
            self._open_window()

    def on_test_begin(self, logs: Any = None) -> None:
        self._end_of_training()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        self._end_of_training()
        if self._writer:
            self._writer.flush()

    def summary(self) -> dict[str, Any]:
        """Return the figures of the whole training for training.json; None for unknown figures."""
        seconds, steps = sum(self._seconds_per_epoch), self._so_far["steps"]
        return {
            "seconds_per_epoch": [round(epoch, 3) for epoch in self._seconds_per_epoch],
            "steps": self.step,
            "step_seconds": seconds / max(1, steps),
            "examples_per_second": steps * self._global_batch / max(1e-9, seconds),
            "cpu_utilisation": self._cpu_utilisation(self._so_far["cpu_seconds"], seconds),
            "gpu_utilisation": self._gpu_utilisation(),
            "cpus": self._cpus,
            "peak_rss_bytes": peak_rss(),
        }

    def _cpu_utilisation(self, cpu_seconds: float | None, seconds: float) -> float | None:
        return None if cpu_seconds is None else cpu_seconds / max(1e-9, seconds * self._cpus)

    def _gpu_utilisation(self) -> float | None:
        if self._gpus is None:
            return None
        self._gpus.finish()
        known = [each.utilisation for each in self._gpus.samples if each.utilisation is not None]
        return statistics.mean(known) if known else None

    def _end_of_training(self) -> None:
        if self._training:
            self._close_window()
            self._training = False

    def _open_window(self) -> None:
        self._first_step = self.step
        self._since = time.perf_counter()
        self._cpu_since = _measured(_cpu_seconds)

    def _close_window(self) -> None:
        self.wait_for_steps()
        steps = self.step - self._first_step
        seconds = time.perf_counter() - self._since
        cpu_seconds = _difference(_measured(_cpu_seconds), self._cpu_since)
        self._seconds_per_epoch[-1] += seconds
        self._so_far["steps"] += steps
        self._so_far["cpu_seconds"] = _sum(self._so_far["cpu_seconds"], cpu_seconds)
        if not steps:
            return
        scalars = {
            "step_seconds": seconds / steps,
            "examples_per_second": steps * self._global_batch / max(1e-9, seconds),
            "cpu_utilisation": self._cpu_utilisation(cpu_seconds, seconds),
            "rss_bytes": _measured(_rss),
            **self._gpu_figures(),
        }
        if self._writer:
            self._writer.write(self.step, scalars)

    def _gpu_figures(self) -> dict[str, float | None]:
        """Return the result of the query of an earlier window, and start the query of this one."""
        if self._gpus is None:
            return {}
        self._gpus.request()
        new = self._gpus.samples[self._gpu_samples_written :]
        self._gpu_samples_written += len(new)
        if not new:
            return {}
        return {"gpu_utilisation": new[-1].utilisation, "gpu_memory_bytes": new[-1].memory}


class _Writer:
    """A writer of TensorBoard scalars that stops writing after the first error."""

    def __init__(self, log_dir: str):
        self._log_dir = log_dir
        self._writer: Any = None
        self._can_write = True
        self._try(self._open)

    def _open(self) -> None:
        self._writer = tf.summary.create_file_writer(self._log_dir)

    def write(self, step: int, scalars: Mapping[str, float | None]) -> None:
        def all_of_them() -> None:
            with self._writer.as_default(step=step):
                for name, value in scalars.items():
                    if value is not None:
                        tf.summary.scalar(f"usage/{name}", value)

        self._try(all_of_them)

    def flush(self) -> None:
        self._try(lambda: self._writer.flush())

    def _try(self, action: Callable[[], None]) -> None:
        if not self._can_write:
            return
        try:
            action()
        except (tf.errors.OpError, OSError) as error:
            self._can_write = False
            logging.warning("%s: usage is no longer logged: %s", self._log_dir, error)


def _has_gpu() -> bool:
    return bool(tf.config.list_physical_devices("GPU")) and bool(shutil.which("nvidia-smi"))


def _cpu_seconds() -> float:
    return sum(psutil.Process().cpu_times()[:2])


def _rss() -> float:
    return float(psutil.Process().memory_info().rss)


def _measured(figure: Callable[[], float]) -> float | None:
    """Return a figure of /proc; None if /proc is hidden or does not have it."""
    try:
        return figure()
    except (psutil.Error, OSError, ValueError, NotImplementedError):
        return None


def _difference(later: float | None, earlier: float | None) -> float | None:
    return None if later is None or earlier is None else later - earlier


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
