"""Simulate the Beam components on 100 million and 1 billion reviews, with measured costs.

    python -m benchmarks.scale [--reviews N,N] [--slots N,N] [--held-out F] [--max-examples]
    python -m benchmarks.scale --runners FILE

`benchmarks.scale_model` is the simulation. FILE is the output of `python -m benchmarks.beam_runners
--only direct,one --json FILE`: the start of each job is then that of this measurement.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Column, Table

from benchmarks.scale_model import (
    COSTS,
    GIB,
    JOBS,
    SIDE_INPUT,
    Data,
    bytes_at_one_place,
    bytes_of_held_out,
    jobs_of,
    reviews_at,
    seconds,
    stages,
)
from benchmarks.usage import wide_console


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reviews", type=_numbers, default=[10**8, 10**9])
    parser.add_argument("--slots", type=_numbers, default=[2, 16, 64, 256])
    parser.add_argument("--held-out", type=float, default=0.1, help="fraction in their files [0.1]")
    parser.add_argument("--max-examples", action="store_true", help="data.max_examples is set")
    parser.add_argument("--all-statistics", action="store_true", help="statistics_examples is null")
    parser.add_argument("--runners", type=Path, metavar="FILE", help="figures of beam_runners")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    jobs: Mapping[str, tuple[float, float]] = JOBS
    if arguments.runners:
        try:
            jobs = jobs_of(json.loads(arguments.runners.read_text()))
        except (OSError, ValueError, KeyError) as error:
            parser.error(f"--runners: {arguments.runners} lacks direct or one: {error!r}")
    console = wide_console()
    console.print(_starts(jobs))
    for count in arguments.reviews:
        data = Data(count, arguments.held_out, arguments.max_examples, arguments.all_statistics)
        console.print(_hours(data, jobs, arguments.slots, arguments.seed))
        console.print(_sizes(data, arguments.slots))
    table = Table("1 GiB in one process", Column("reviews", justify="right"))
    for what, at in reviews_at(GIB, data._replace(max_examples=True)).items():
        table.add_row(what, f"{at / 1e6:,.0f} million")
    console.print(table)


def _numbers(text: str) -> list[int]:
    return [int(float(word)) for word in text.split(",")]


def _starts(jobs: Mapping[str, tuple[float, float]]) -> Table:
    titles = ("direct, s", "one, s", "start of the job, s")
    table = Table("measured", *[Column(title, justify="right") for title in titles])
    for component, (direct, one) in jobs.items():
        table.add_row(component, f"{direct:.1f}", f"{one:.1f}", f"{one - direct:.1f}")
    return table


def _hours(
    data: Data, jobs: Mapping[str, tuple[float, float]], slots: Sequence[int], seed: int
) -> Table:
    titles = [f"{number} slots, h" for number in slots]
    table = Table(f"{data.reviews:,} reviews", *[Column(each, justify="right") for each in titles])
    total, serial = dict.fromkeys(slots, 0.0), 0.0
    for stage in stages(data, jobs):
        serial += stage.start + stage.alone
        taken = {number: seconds(stage, number, seed) for number in slots}
        total = {number: total[number] + taken[number] for number in slots}
        cells = [f"{value / 3600:.2f}" for value in taken.values()]
        table.add_row(f"{stage.component}, {stage.name}", *cells)
    table.add_row("all", *[f"{value / 3600:.2f}" for value in total.values()])
    table.add_row("of it serial", *[f"{serial / value:.0%}" for value in total.values()])
    trainer = data.reviews / 1e6 * COSTS["Trainer, s per 1M"] / 3600
    table.add_row("Trainer, one machine of two cores", *[f"{trainer:.2f}"] * len(slots))
    return table


def _sizes(data: Data, slots: Sequence[int]) -> Table:
    table = Table(f"{data.reviews:,} reviews", Column("", justify="right"))
    for what, cost in (("input", "raw"), ("Examples", "output")):
        size = data.reviews * COSTS[f"{cost} bytes per review"]
        table.add_row(f"{what}, GiB", f"{size / GIB:,.0f}")
    table.add_row("units of ReviewExampleGen", f"{data.units:,}")
    table.add_row("shards", f"{data.shards:,}")
    held_out = bytes_of_held_out(data)
    for what, size in {**held_out, **bytes_at_one_place(data)}.items():
        table.add_row(f"{what}, MiB", f"{size / 2**20:,.0f}")
    sent = sum(stage.sent for stage in stages(data))
    side_input = held_out.get(SIDE_INPUT, 0.0)
    worker = COSTS["memory of a Python worker, MiB"] * 2**20 + side_input
    machine = worker + COSTS["memory of a TaskManager, MiB"] * 2**20
    for number in slots:
        title = f"{number} TaskManagers of a slot"
        table.add_row(f"{title}: memory, GiB", f"{number * machine / GIB:,.0f}")
        # Every TaskManager receives the side input.
        table.add_row(f"{title}: sent, GiB", f"{(sent + number * side_input) / GIB:,.1f}")
    return table


if __name__ == "__main__":
    main()
