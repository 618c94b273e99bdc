"""Common parts of the benchmarks: a process for each measurement, and its resource usage."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psutil
from rich.console import Console

REPOSITORY = Path(__file__).parents[1]
MEBIBYTE = 2**20
_SECONDS_BETWEEN_SAMPLES = 0.5
_BLOCK = 512
"""Bytes in a block of `st_blocks`, on any file system."""
_COLUMNS = 140


def wide_console() -> Console:
    """Return a console that does not narrow a table if its output is a file."""
    return Console(width=max(Console().width, _COLUMNS), markup=False, emoji=False)


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def gpus() -> int:
    """Return the number of GPUs that nvidia-smi lists."""
    if not shutil.which("nvidia-smi"):
        return 0
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


class Sampler(Protocol):
    """Measures a process and its descendants while they are alive."""

    def sample(self, pid: int) -> None:
        """Add a sample of the process `pid`."""


def _measured(pid: int, measure: Callable[[psutil.Process], float]) -> dict[int, float]:
    """Return pid -> measure of a process and of its descendants that are alive now."""
    found = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                found[process.pid] = measure(process)
    return found


@dataclasses.dataclass
class Peak:
    """The peak memory of a process and its descendants together, and the peak size of a folder.

    Attributes:
      folder: the folder that they write to.
      memory: bytes; a page that several processes share counts for each of them.
      disk: bytes on disk.
    """

    folder: Path
    memory: int = 0
    disk: int = 0

    def sample(self, pid: int) -> None:
        """Add a sample of the processes that are alive now."""
        used = _measured(pid, lambda process: process.memory_info().rss)
        self.memory = max(self.memory, int(sum(used.values())))
        self.disk = max(self.disk, _size(self.folder))


def size_of_files(folder: Path) -> int:
    """Return the sum of the sizes of all files below a folder, in bytes."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _size(folder: Path) -> int:
    """Return the bytes on disk of all files below a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            # Temporary files end at any time.
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_blocks * _BLOCK
    return total


@dataclasses.dataclass
class CpuTime:
    """Samples of the CPU seconds of a process and its descendants, with their wall-clock time."""

    samples: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    _by_process: dict[int, float] = dataclasses.field(default_factory=dict)

    def sample(self, pid: int) -> None:
        """Add a sample of the processes that are alive now."""
        # Processes that have ended count too.
        self._by_process |= _measured(pid, lambda process: sum(process.cpu_times()[:2]))
        self.samples.append((time.time(), sum(self._by_process.values())))

    def seconds(self, start: float, end: float) -> float:
        """Return the CPU seconds from `start` to `end`, interpolated between samples."""
        times, used = zip(*self.samples, strict=True)
        first, last = np.interp([start, end], times, used)
        return float(last - first)

    def utilisation(self, start: float, end: float) -> float | None:
        """Return CPU time / (wall time * `cores()`) from `start` to `end`, in [0, 1].

        Returns None if there are fewer than two samples in this interval.
        """
        inside = [sample for sample in self.samples if start <= sample[0] <= end]
        if len(inside) < 2:
            return None
        (first, used_first), (last, used_last) = inside[0], inside[-1]
        return (used_last - used_first) / (last - first) / cores()


def run_module(
    module: str,
    *arguments: str,
    log: Path,
    environment: Mapping[str, str] | None = None,
    samplers: Sequence[Sampler] = (),
) -> str:
    """Run `python -m MODULE ARGUMENTS` in the repository; return its standard output.

    Args:
      module, arguments: the command line.
      log: the file to which its standard error is appended.
      environment: variables in addition to those of this process.
      samplers: take samples while the module runs.

    Raises:
      SystemExit: the module failed; the message contains the path of a copy of its log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=REPOSITORY,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=sink,
            text=True,
        )
    while True:
        try:
            output, _ = process.communicate(timeout=_SECONDS_BETWEEN_SAMPLES)
            break
        except subprocess.TimeoutExpired:
            for sampler in samplers:
                sampler.sample(process.pid)
    if process.returncode:
        kept = Path(tempfile.gettempdir()) / "benchmark-failed.log"
        shutil.copy(log, kept)
        raise SystemExit(f"{module} failed with exit code {process.returncode}; log: {kept}")
    return output


def figures_of(
    module: str, *arguments: str, log: Path, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a module and return the JSON object on the last line of its output."""
    output = run_module(module, *arguments, log=log, environment=environment)
    return json.loads(output.splitlines()[-1])


def some_of(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """Return a type for argparse that parses `a,b` to ["a", "b"] and allows only `choices`."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(choices)}")
        return names

    return parse


def numbers(text: str) -> list[int]:
    """Parse `1,2` to [1, 2]; a type for argparse."""
    return [int(part) for part in text.split(",")]
