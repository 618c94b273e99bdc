"""What the scripts here share: a process of its own for each measurement, and what it used."""

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
_SECONDS_BETWEEN = 0.5
_COLUMNS = 140


def wide_console() -> Console:
    """One that does not squeeze a table when its output goes to a file."""
    return Console(width=max(Console().width, _COLUMNS), markup=False, emoji=False)


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def gpus() -> int:
    """GPUs of this machine, as nvidia-smi lists them."""
    if not shutil.which("nvidia-smi"):
        return 0
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())


@dataclasses.dataclass
class CpuTime:
    """CPU seconds that a process and its descendants had used, at moments of the wall clock."""

    samples: list[tuple[float, float]] = dataclasses.field(default_factory=list)

    def sample(self, pid: int) -> None:
        """Adds a sample of now, of all that are alive."""
        used = 0.0
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    used += sum(process.cpu_times()[:2])
        self.samples.append((time.time(), used))

    def utilisation(self, start: float, end: float) -> float | None:
        """CPU time over the wall time of all `cores()`, from `start` to `end`, in [0, 1].

        None: there are no two samples in between.
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
    """Runs `python -m MODULE ARGUMENTS` in the repository; returns its standard output.

    Args:
      log: where its standard error is appended.
      environment: variables to set beside those of this process.
      cpu_time: is given samples while it runs.

    Raises:
      SystemExit: it failed; the message says where its log was kept.
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
            output, _ = process.communicate(timeout=_SECONDS_BETWEEN)
            break
        except subprocess.TimeoutExpired:
            if cpu_time is not None:
                cpu_time.sample(process.pid)
    if process.returncode:
        kept = Path(tempfile.gettempdir()) / "benchmark-failed.log"
        shutil.copy(log, kept)
        raise SystemExit(f"{module} ended with exit code {process.returncode}, its log is {kept}")
    return output


def figures_of(
    module: str, *arguments: str, log: Path, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The JSON object on the last line that `run_module` gives."""
    output = run_module(module, *arguments, log=log, environment=environment)
    return json.loads(output.splitlines()[-1])


def some_of(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """For argparse: `a,b` -> ["a", "b"], each one of `choices`."""

    def parse(text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        for name in names:
            if name not in choices:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(choices)}")
        return names

    return parse
