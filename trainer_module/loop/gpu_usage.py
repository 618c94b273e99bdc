"""Utilisation and memory of this machine's GPUs by nvidia-smi, without delaying a training."""

from __future__ import annotations

import contextlib
import queue
import statistics
import subprocess
import threading
from dataclasses import dataclass

from absl import logging

_COMMAND = (
    "nvidia-smi",
    "--query-gpu=utilization.gpu,memory.used",
    "--format=csv,noheader,nounits",
)
_SECONDS_TO_ANSWER = 10.0
_SECONDS_TO_FINISH = 2.0
"""Timeout of the last query, at the end of the training."""


@dataclass(frozen=True)
class Sample:
    """The usage of all GPUs at one moment; None for a figure that is not reported.

    Attributes:
      utilisation: mean, in [0, 1].
      memory: bytes in use.
    """

    utilisation: float | None
    memory: float | None


class GpuSampler:
    """A thread that queries nvidia-smi.

    The first query that fails is logged and is the last one. After it the figures are missing, and
    the training continues.
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        """The samples so far; the thread appends to this list, and no code removes from it."""
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        # With a driver that hangs, nvidia-smi cannot even be killed. The interpreter waits at its
        # exit only for threads that are not daemons.
        self._thread = threading.Thread(target=self._serve, name="nvidia-smi", daemon=True)
        with contextlib.suppress(RuntimeError):  # no room for another thread
            self._thread.start()

    def request(self) -> None:
        """Request a sample of this moment, and return at once."""
        if self._thread.is_alive() and self._requests.empty():
            self._requests.put(True)

    def finish(self) -> None:
        """End the thread; wait up to two seconds for the last sample."""
        self._requests.put(False)
        if self._thread.is_alive():
            self._thread.join(_SECONDS_TO_FINISH)

    def _serve(self) -> None:
        try:
            while self._requests.get():
                self.samples.append(_query())
        except Exception as error:
            logging.warning("GPU utilisation and memory are no longer measured: %s", error)


def _query() -> Sample:
    """Return a sample.

    Raises:
      OSError, subprocess.SubprocessError: nvidia-smi cannot be started, or exceeds the timeout.
      RuntimeError: nvidia-smi failed, or its output has no figure.
    """
    done = subprocess.run(
        _COMMAND,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS_TO_ANSWER,
        # Its output may become a line in the log, so it must not fail to decode.
        text=True,
        errors="replace",
    )
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).split())[:200]
        raise RuntimeError(f"nvidia-smi ended with exit code {done.returncode}: {words}")
    rows = [line.split(",") for line in done.stdout.splitlines()]
    utilisations, memories = (_numbers(rows, column) for column in (0, 1))
    if not utilisations and not memories:
        raise RuntimeError(f"nvidia-smi printed no figure: {done.stdout[:200]!r}")
    return Sample(
        statistics.mean(utilisations) / 100 if utilisations else None,
        sum(memories) * 2**20 if memories else None,
    )


def _numbers(rows: list[list[str]], column: int) -> list[float]:
    """Return the numbers in a column; an unsupported figure is `[N/A]` and left out."""
    numbers = []
    for row in rows:
        cell = row[column].strip() if column < len(row) else ""
        if cell.isdecimal():
            numbers.append(float(cell))
    return numbers
