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
from typing import Any

import psutil
from rich.console import Console

REPOSITORY = Path(__file__).parents[1]
MEBIBYTE = 2**20
_SECONDS_BETWEEN_SAMPLES = 0.5
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


@dataclasses.dataclass
class CpuTime:
    """Samples of the CPU seconds of a process and its descendants, with their wall-clock time."""

    samples: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def sample(self, pid: int) -> None:
        """Add a sample of the processes that are alive now."""
        used = 0.0
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    used += sum(process.cpu_times()[:2])
        self.samples.append((time.time(), used))

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
    cpu_time: CpuTime | None = None,
) -> str:
    """Run `python -m MODULE ARGUMENTS` in the repository; return its standard output.

    Args:
      module, arguments: the command line.
      log: the file to which its standard error is appended.
      environment: variables in addition to those of this process.
      cpu_time: gets samples while the module runs.

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
            if cpu_time is not None:
                cpu_time.sample(process.pid)
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
