"""Common parts of the benchmarks: arguments, a process for each measurement, its resources."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psutil
from rich.console import Console

if TYPE_CHECKING:
    from cli.run_state import RunState
    from components.run_report.outcome import Outcome

REPOSITORY = Path(__file__).parents[1]
MEBIBYTE = 2**20
_SECONDS_BETWEEN_SAMPLES = 0.5
_BLOCK = 512
"""Bytes in a block of `st_blocks`, on any file system."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that most benchmarks have."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("--set", default=[], action="append", help="settings of ours, KEY=VALUE")
    made.add_argument("--json", type=Path, help="output file for the figures")
    made.add_argument("--scratch", help="folder for temporary files")
    return made


def wide_console() -> Console:
    """Return a console that does not narrow a table if its output is a file."""
    return Console(width=max(Console().width, 140), markup=False, emoji=False)


def print_machine(console: Console, measured: object) -> None:
    """Print what was measured, and the machine."""
    console.print(
        f"{measured}, {cores()} CPUs, {gpus()} GPUs, load {os.getloadavg()[0]:.1f} at the end, "
        f"Python {platform.python_version()}"
    )


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def gpus() -> int:
    """Return the number of GPUs that nvidia-smi lists."""
    if not shutil.which("nvidia-smi"):
        return 0
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


def fail(problem: str, log: Path) -> SystemExit:
    """Return the error that ends a benchmark; it contains the path of a copy of a log.

    Args:
      problem: the beginning of the message.
      log: the log, which is copied because its folder may be temporary.
    """
    kept = Path(tempfile.gettempdir()) / "benchmark-failed.log"
    shutil.copy(log, kept)
    return SystemExit(f"{problem}; log: {kept}")


def outcome(state: RunState, log: Path) -> Outcome:
    """Return the outcome of a run of our pipeline.

    Args:
      state: the state of the run after its end.
      log: its log.

    Raises:
      SystemExit: the run failed.
    """  # noqa: DOC501
    if state.outcome is None:
        raise fail(f"the run failed: {state.failure}", log)
    return state.outcome


def run_module(
    module: str, *arguments: str, log: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Run `python -m MODULE ARGUMENTS` in the repository; return its standard output.

    Args:
      module: the full name of the module.
      arguments: its command-line arguments.
      log: the file to which its standard error is appended.
      environment: environment variables in addition to those of this process.

    Raises:
      SystemExit: the module failed; the message contains the path of a copy of its log.
    """  # noqa: DOC501
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=REPOSITORY,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
    if done.returncode:
        raise fail(f"{module} failed with exit code {done.returncode}", log)
    return done.stdout


def run_measurement(module: str, *arguments: str, log: Path) -> dict[str, Any]:
    """Run a module, and return the JSON object on the last line of its output.

    Args:
      module: the full name of the module.
      arguments: its command-line arguments.
      log: the file to which its standard error is appended.

    Raises:
      SystemExit: the module failed; the message contains the path of a copy of its log.
      ValueError: the last line is not JSON.
    """
    return json.loads(run_module(module, *arguments, log=log).splitlines()[-1])


class Sample(NamedTuple):
    """The resources of the processes at one time."""

    time: float  # by the clock of the `ProcessTree`
    cpu: float  # CPU seconds so far, including those of processes that have ended
    resident: Mapping[str, int]  # kind of process -> sum of its resident memory in bytes
    together: int | None  # memory of all processes in bytes, shared pages in parts (PSS), or None
    disk: int  # size of the folder in bytes


class ProcessTree:
    """A sampler of the descendants of this process, which runs in a thread until the context ends.

    Args:
      kinds: a word of a command line -> the kind of the process. The first word that occurs in the
        command line decides.
      folder: the folder whose size is sampled.
      clock: the clock of the samples and of all intervals.
    """

    def __init__(
        self,
        kinds: Mapping[str, str] | None = None,
        folder: Path | None = None,
        clock: Callable[[], float] = time.time,
    ):
        self._kinds, self._folder, self._clock = kinds or {}, folder, clock
        self._cpu: dict[psutil.Process, float] = {}
        self._samples: list[Sample] = []
        self._next_together = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_end, daemon=True)

    def __enter__(self) -> ProcessTree:
        # The CPU time that a new process has used before its first sample counts from here.
        self._samples.append(self._sample())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def cpu_seconds(self, start: float, end: float) -> float:
        """Return the CPU seconds from `start` to `end`, interpolated between samples."""
        times, used = zip(*((sample.time, sample.cpu) for sample in self._samples), strict=True)
        first, last = np.interp([start, end], times, used)
        return float(last - first)

    def samples(self, *intervals: tuple[float, float]) -> list[Sample]:
        """Return the samples in intervals of (start, end); without intervals, all samples."""
        return [
            sample
            for sample in self._samples
            if not intervals or any(start <= sample.time <= end for start, end in intervals)
        ]

    def _sample_until_end(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_SAMPLES):
            self._samples.append(self._sample())

    def _sample(self) -> Sample:
        resident: Counter[str] = Counter()
        processes = psutil.Process().children(recursive=True)
        for process in processes:
            with contextlib.suppress(psutil.Error):
                command = " ".join(process.cmdline())
                self._cpu[process] = sum(process.cpu_times()[:2])
                kind = next(
                    (kind for word, kind in self._kinds.items() if word in command), "other"
                )
                resident[kind] += process.memory_info().rss
        together = self._measure_together(processes)
        disk = _size_on_disk(self._folder) if self._folder else 0
        return Sample(self._clock(), sum(self._cpu.values()), resident, together, disk)

    def _measure_together(self, processes: list[psutil.Process]) -> int | None:
        """Return the sum of the PSS of processes, measured in at most a tenth of the time; or None.

        The kernel visits every page, 50 ms for a process of 600 MiB. Without a limit the
        sampler would slow down what it measures.
        """
        start = time.monotonic()
        if start < self._next_together:
            return None
        together = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                together += process.memory_full_info().pss
        end = time.monotonic()
        self._next_together = end + 9 * (end - start)
        return together


def most_together(samples: Iterable[Sample]) -> int:
    """Return the maximum of the measured memory of all processes together, in bytes.

    Raises:
      ValueError: no sample has it.
    """
    return max(sample.together for sample in samples if sample.together is not None)


def _size_on_disk(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            # Temporary files end at any time.
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_blocks * _BLOCK
    return total
