"""What nvidia-smi reports of this machine's GPUs, without keeping a training waiting."""

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
"""Of the last query, once the training is over."""


@dataclass(frozen=True)
class Sample:
    """Over all GPUs; None: not reported.

    Attributes:
      utilisation: mean, in [0, 1].
      memory: bytes in use.
    """

    utilisation: float | None
    memory: float | None


class GpuSampler:
    """Queries nvidia-smi in a thread of its own.

    After a query that fails there is one line in the log, and no further query: the figures are
    then missing, and nothing else.
    """

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        """Those that have come so far; the thread appends, nobody removes."""
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        # A daemon: a driver that hangs leaves a process that cannot even be killed, and the
        # interpreter would wait for the thread that waits for it.
        self._thread = threading.Thread(target=self._serve, name="nvidia-smi", daemon=True)
        with contextlib.suppress(RuntimeError):  # no room for another thread
            self._thread.start()

    def request(self) -> None:
        """Requests a sample of this moment; returns at once."""
        if self._thread.is_alive() and self._requests.empty():
            self._requests.put(True)

    def finish(self) -> None:
        """Ends the thread; the last sample has a moment to arrive."""
        self._requests.put(False)
        if self._thread.is_alive():
            self._thread.join(_SECONDS_TO_FINISH)

    def _serve(self) -> None:
        try:
            while self._requests.get():
                self.samples.append(_query())
        except Exception as error:
            logging.warning("No GPU utilisation or memory is measured from now on: %s", error)


def _query() -> Sample:
    """Raises an exception that says what nvidia-smi did instead of reporting anything."""
    done = subprocess.run(
        _COMMAND,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS_TO_ANSWER,
        # Of whatever it prints a line in the log is made.
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
    """Those of a column; a GPU that does not know one has `[N/A]` there."""
    numbers = []
    for row in rows:
        cell = row[column].strip() if column < len(row) else ""
        if cell.isdecimal():
            numbers.append(float(cell))
    return numbers
