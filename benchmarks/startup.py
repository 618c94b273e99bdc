"""Measure the CPU time of commands that do little, next to that of `import tensorflow`.

    python -m benchmarks.startup [--repeat N]

A run of the sample in a scratch folder comes first. Then every row of the table is measured N
times, in turns, and the least CPU time counts. On a busy machine seconds say little, so compare the
ratios.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from rich.table import Table

from benchmarks.usage import REPOSITORY, wide_console

_REFERENCE = "import tensorflow"
_COMMAND = "amazon-reviews"
_CHILDREN = ("children_user", "children_system")
_MAIN = "from cli.command import main; main()"
_IMPORTS = (_REFERENCE, "import tfx.v1")
_COMMANDS: Sequence[tuple[str, ...]] = (
    ("--help",),
    ("runs",),
    ("predict", "Battery died in a week"),
    ("run",),
)


class Time(NamedTuple):
    """The time of a process and its descendants, in seconds."""

    cpu: float
    wall: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each row [3]")
    parser.add_argument("--scratch", help="folder for temporary files")
    arguments = parser.parse_args()
    console = wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        environment = _environment(Path(folder))
        console.print("a run of the sample …")
        first = _measure(_program("run"), environment)
        programs = {text: [sys.executable, "-c", text] for text in _IMPORTS}
        programs |= {" ".join((_COMMAND, *words)): _program(*words) for words in _COMMANDS}
        times: dict[str, list[Time]] = {name: [] for name in programs}
        for number in range(arguments.repeat):
            console.print(f"measurement {number + 1} of {arguments.repeat} …")
            for name, program in programs.items():
                times[name].append(_measure(program, environment))
    console.print(_table({name: min(found) for name, found in times.items()}))
    console.print(f"the first run, of the sample, took {first.cpu:.1f} CPU s")
    console.print(f"{os.cpu_count()} CPUs, Python {platform.python_version()}")


def _environment(folder: Path) -> Mapping[str, str]:
    """Return environment variables with settings whose runs and models are in `folder`."""
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump({"paths": {"root": str(folder / "runs")}}))
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PIPELINE_CONFIG": str(config), "PYTHONPATH": path}


def _program(*words: str) -> list[str]:
    return [sys.executable, "-c", _MAIN, *words]


def _measure(program: Sequence[str], environment: Mapping[str, str]) -> Time:
    """Run a program once.

    Raises:
      SystemExit: the program failed; the message contains its output.
    """
    start, before = time.monotonic(), os.times()
    done = subprocess.run(
        program,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wall, after = time.monotonic() - start, os.times()
    if done.returncode:
        raise SystemExit(f"{program} failed with exit code {done.returncode}:\n{done.stdout}")
    used = [getattr(after, name) - getattr(before, name) for name in _CHILDREN]
    return Time(sum(used), wall)


def _table(times: Mapping[str, Time]) -> Table:
    table = Table("command", "CPU s", "s", f"CPU / {_REFERENCE}")
    for name, found in times.items():
        ratio = found.cpu / times[_REFERENCE].cpu
        table.add_row(name, f"{found.cpu:.2f}", f"{found.wall:.2f}", f"{ratio:.2f}")
    return table


if __name__ == "__main__":
    main()
