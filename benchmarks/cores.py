"""Estimate what more cores would give to each component, from runs on one core and on two.

    python -m benchmarks.cores FOLDER [--train N] [--test N] [--repeat K]
    python -m benchmarks.cores --from FOLDER [--train N] [--test N] [--repeat K]

FOLDER, N and --from are those of `benchmarks.whole`. The preset `amazon` runs in a process that may
use one core, then in one that may use two, K times each, in turns; the least seconds of each
component count. With the seconds T(1) and T(2) the metric of Karp and Flatt is the serial
fraction

    e = (T(p) / T(1) - 1 / p) / (1 - 1 / p)   with p = 2,

and Amdahl's law gives T(n) = T(1) (e + (1 - e) / n).

The limits of this method: e also has all that two cores share (memory, caches, the disk), and
all costs of the distribution itself, so that a measured e is greater than that of the code.
On more cores these costs grow, and Amdahl's law ignores it: T(n) is a lower bound if e is
right. A component whose work is mostly fixed (imports, graphs, Beam's stages) has a great e on few
reviews, and a smaller one on many; the last table has no such fixed part removed. The
difference of two measurements is sensitive to other work on the machine: 5 % of T(2) are 0.1 of e.

The second table is independent of T(1). It divides the seconds on two cores by the number of
threads that work, see `benchmarks.serial_profile`, and the list below it has the functions of the
serial part of the component that has the longest one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Column, Table

from benchmarks import serial_profile, usage, whole

_MANY = (16, 64)
_PLACES = 12
_REST = "between components"


class Cost(NamedTuple):
    """The time of a component on one core and on several.

    Attributes:
      alone: seconds on one core.
      together: seconds on `cores` cores.
      cores: number of cores, at least two.
      cpu: CPU seconds on one core.
    """

    alone: float
    together: float
    cores: int
    cpu: float

    @property
    def serial(self) -> float:
        """The metric of Karp and Flatt, in [0, 1]."""
        fraction = (self.together / self.alone - 1 / self.cores) / (1 - 1 / self.cores)
        return min(1.0, max(0.0, fraction))

    def seconds(self, cores: int) -> float:
        """Return the seconds on a number of cores by Amdahl's law."""
        return self.alone * (self.serial + (1 - self.serial) / cores)


def main() -> None:
    parser = whole.parser(__doc__)
    parser.add_argument("--repeat", type=int, default=1, help="runs on one and on two cores [1]")
    arguments = whole.checked(parser)
    if usage.cores() < 2:
        raise SystemExit("requires two cores")
    console = usage.wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        inputs = Path(folder) / "input"
        inputs.mkdir()
        console.print("archives …")
        whole.provide(arguments, inputs, Path(folder) / "log")
        runs: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
        for number in range(arguments.repeat):
            for cores, found in runs.items():
                console.print(f"run {number + 1} of {arguments.repeat} on {cores} cores …")
                found.append(_run(arguments, inputs, Path(folder) / f"{cores}-{number}", cores))
    costs, profile = _costs(runs), runs[2][-1]["profile"]
    console.print(costs_table(costs))
    console.print(kinds_table(profile))
    longest = max(profile, key=lambda name: profile[name].seconds["one thread"])
    console.print(f"the serial part of {longest}:")
    for place, seconds in profile[longest].serial.most_common(_PLACES):
        console.print(f"  {seconds:6.1f} s  {place}")
    console.print(
        f"{arguments.folder or arguments.source}, load {os.getloadavg()[0]:.1f} at the end, "
        f"Python {platform.python_version()}"
    )
    if arguments.json:
        figures = {"costs": costs, "profile": profile}
        arguments.json.write_text(json.dumps(figures, indent=1))


@contextlib.contextmanager
def on_cores(number: int) -> Iterator[None]:
    """Let this process, and the processes that it starts, use that number of its cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:number])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _run(arguments: argparse.Namespace, inputs: Path, root: Path, cores: int) -> dict[str, Any]:
    """Run the pipeline; return the figures of `whole.run`, and component -> Summary."""
    samples = root.with_suffix(".jsonl")
    log = root.with_suffix(".log")
    with on_cores(cores):
        figures = whole.run(
            inputs, root, arguments.set, log, via=("benchmarks.serial_profile", str(samples))
        )
    recorded = serial_profile.read(samples)
    figures["profile"] = {
        name: serial_profile.summary(recorded, found["start"], found["start"] + found["s"])
        for name, found in figures["components"].items()
    }
    return figures


def _costs(runs: Mapping[int, Sequence[Mapping[str, Any]]]) -> dict[str, Cost]:
    """Return the least costs of each component, and of the rest of the run."""
    found: dict[str, Cost] = {}
    several = max(runs)
    for name in (*runs[several][0]["components"], _REST):
        alone, together = (
            min((_time(run, name) for run in runs[cores]), key=lambda time: time[0])
            for cores in (1, several)
        )
        found[name] = Cost(alone[0], together[0], several, alone[1])
    return found


def _time(run: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of a component, or of the rest."""
    components = run["components"]
    if name in components:
        return components[name]["s"], components[name]["cpu"]
    used = [sum(found[key] for found in components.values()) for key in ("s", "cpu")]
    return run["seconds"] - used[0], run["cpu"] - used[1]


def costs_table(costs: Mapping[str, Cost]) -> Table:
    """Return a table with the serial fraction and the estimated seconds of each component."""
    estimates = [f"s on {cores}" for cores in _MANY]
    titles = ("CPU s on 1", "s on 1", "s on 2", "serial fraction", *estimates, "speed-up")
    table = Table("component", *[Column(title, justify="right") for title in titles])
    sums = Cost(
        sum(cost.alone for cost in costs.values()),
        sum(cost.together for cost in costs.values()),
        2,
        sum(cost.cpu for cost in costs.values()),
    )
    for name, cost in costs.items():
        _add(table, name, cost, [cost.seconds(cores) for cores in _MANY])
    table.add_section()
    every = [sum(cost.seconds(cores) for cost in costs.values()) for cores in _MANY]
    _add(table, "the run", sums, every)
    table.caption = f"speed-up: from 1 core to {_MANY[-1]}"
    return table


def _add(table: Table, name: str, cost: Cost, estimates: Sequence[float]) -> None:
    cells = [f"{value:.1f}" for value in (cost.cpu, cost.alone, cost.together)]
    cells.append(f"{cost.serial:.2f}")
    cells += [f"{value:.1f}" for value in estimates]
    table.add_row(name, *cells, f"{cost.alone / estimates[-1]:.1f}")


def kinds_table(profile: Mapping[str, serial_profile.Summary]) -> Table:
    """Return a table with the seconds of each component by the number of working threads."""
    titles = [f"{kind}, s" for kind in serial_profile.KINDS]
    table = Table("on 2 cores", *[Column(title, justify="right") for title in titles])
    for name, found in profile.items():
        table.add_row(name, *[f"{found.seconds[kind]:.1f}" for kind in serial_profile.KINDS])
    return table


if __name__ == "__main__":
    main()
