"""How fast a training goes and what it uses of the machine: for TensorBoard and training.json."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from typing import Any

import psutil
import tensorflow as tf

from trainer_module.callbacks import StepCallback
from trainer_module.memory import peak_rss

_SECONDS_BETWEEN = 5.0
_GPU_QUERY = [
    "nvidia-smi",
    "--query-gpu=utilization.gpu,memory.used",
    "--format=csv,noheader,nounits",
]


class Usage(StepCallback):
    """Step time, Examples a second, memory and utilisation, while training and not evaluating.

    Every few seconds and at the end of an epoch they become TensorBoard scalars under `usage/`;
    `summary` has them for the whole training. CPU utilisation is this process's CPU time over the
    wall time of the CPUs that it may run on; GPU utilisation and memory are nvidia-smi's, over all
    GPUs. Utilisations are in [0, 1], memory in bytes.
    """

    def __init__(self, log_dir: str | None, global_batch: int):
        super().__init__()
        self._writer = tf.summary.create_file_writer(log_dir) if log_dir else None
        self._global_batch = global_batch
        self._process = psutil.Process()
        self._cpus = len(os.sched_getaffinity(0))
        self._has_gpu = bool(tf.config.list_physical_devices("GPU")) and bool(
            shutil.which(_GPU_QUERY[0])
        )
        self._seconds_per_epoch: list[float] = []
        self._cpu_seconds = 0.0
        self._gpu_utilisations: list[float] = []
        self._training = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._training = True
        self._seconds_per_epoch.append(0.0)
        self._open_window()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if time.perf_counter() - self._since >= _SECONDS_BETWEEN:
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
        """Figures of the whole training, for training.json."""
        seconds = sum(self._seconds_per_epoch)
        return {
            "seconds_per_epoch": [round(epoch, 3) for epoch in self._seconds_per_epoch],
            "steps": self.step,
            "step_seconds": seconds / max(1, self.step),
            "examples_per_second": self.step * self._global_batch / max(1e-9, seconds),
            "cpu_utilisation": self._cpu_seconds / max(1e-9, seconds * self._cpus),
            "gpu_utilisation": (
                statistics.mean(self._gpu_utilisations) if self._gpu_utilisations else None
            ),
            "cpus": self._cpus,
            "peak_rss_bytes": peak_rss(),
        }

    def _end_of_training(self) -> None:
        if self._training:
            self._close_window()
            self._training = False

    def _open_window(self) -> None:
        self._first_step = self.step
        self._since = time.perf_counter()
        self._cpu_since = sum(self._process.cpu_times()[:2])

    def _close_window(self) -> None:
        self.wait_for_steps()
        steps = self.step - self._first_step
        seconds = time.perf_counter() - self._since
        cpu_seconds = sum(self._process.cpu_times()[:2]) - self._cpu_since
        self._seconds_per_epoch[-1] += seconds
        self._cpu_seconds += cpu_seconds
        if not steps:
            return
        scalars = {
            "step_seconds": seconds / steps,
            "examples_per_second": steps * self._global_batch / seconds,
            "cpu_utilisation": cpu_seconds / (seconds * self._cpus),
            "rss_bytes": self._process.memory_info().rss,
        }
        if self._has_gpu:
            utilisation, memory = _gpu_usage()
            self._gpu_utilisations.append(utilisation)
            scalars |= {"gpu_utilisation": utilisation, "gpu_memory_bytes": memory}
        if self._writer:
            with self._writer.as_default(step=self.step):
                for name, value in scalars.items():
                    tf.summary.scalar(f"usage/{name}", value)


def _gpu_usage() -> tuple[float, float]:
    """(mean utilisation in [0, 1], bytes in use) over all GPUs."""
    printed = subprocess.run(_GPU_QUERY, capture_output=True, text=True, timeout=10).stdout
    rows = [[float(cell) for cell in line.split(",")] for line in printed.splitlines()]
    return (
        statistics.mean(row[0] for row in rows) / 100,
        sum(row[1] for row in rows) * 2**20,
    )
