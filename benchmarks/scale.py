"""Simulate the Beam components on 100 million and 1 billion reviews, with measured costs.

    python -m benchmarks.scale [--reviews N,N] [--slots N,N] [--held-out F] [--max-examples]

Every stage divides its reviews into units, as the code does. A unit goes to the slot that is free
first, and some units are stragglers. What one process does alone comes before or after the units.
The stages run one after the other. `COSTS` has the measurements, `ASSUMED` what was not measured.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Column, Table

from benchmarks.usage import wide_console

GIB = 2**30
COSTS = {
    # `python -m benchmarks.scale_costs FILES`, 200,000 reviews.
    "raw bytes per review": 718.0,
    "output bytes per review": 418.0,
    "bytes of a unit in the job": 784.0,
    "bytes of a unit in done.json": 2_902.0,
    "ReadUnit, CPU s per 1M": 24.8,
    "HeldOutKeys, CPU s per 1M": 4.6,
    "HeldOutKeys, bytes per key": 8.0,
    "JoinHeldOut, peak bytes per key": 33.0,
    # The sums of six slices of 65,536 reviews, 380 kB each.
    "Evaluator, bytes per review": 35.0,
    "RankKeys, CPU s per 1M": 5.1,
    "RankKeys, bytes per review": 16.0,
    "FindCap, peak bytes per review": 32.0,
    # `python -m benchmarks.beam_runners`, 200,000 reviews. `direct` without that of 3,000 reviews.
    "Transform, CPU s per 1M": 38.0,
    # The same with `local`, because all Examples pass through Flink.
    "StatisticsGen of all Examples, CPU s per 1M": 97.0,
    # The same: CPU seconds of `one` without `direct`, for a job with one worker.
    "start of a job and its workers, s": 35.0,
    "StatisticsGen of all Examples, start, s": 71.0,
    "memory of a Python worker, MiB": 1_077.0,
    "memory of a TaskManager, MiB": 1_702.0,
    # The page about performance: n-grams for 19 µs, and two models for 10 µs each.
    "Evaluator, CPU s per 1M": 39.0,
    # The laboratory journal, 218,590 and 1,967,310 reviews on two cores.
    "StatisticsGen of a sample, s per 1M": 2.0,
    # The page of results, `ngram_linear`, two epochs on two cores.
    "Trainer, s per 1M": 51.0,
    # Six arrays of int64, with a value for each block of 16 Examples (`Reader.rest`).
    "resumed epoch, bytes per review": 3.0,
}
ASSUMED = {
    "seconds to open or rename a file of an object store": 0.05,
    "files that are opened or renamed at once": 16,
    "fraction of stragglers": 0.05,
    "time of a straggler / time of another unit": 3.0,
    "standard deviation of the logarithm of a unit's time": 0.1,
    "bytes of an input file": 128 << 20,
}
_BYTES_PER_UNIT = 128 << 20
_SHARDS_PER_UNIT = 8
_SPLITS = 3
_FILES_PER_UNIT = 8


class Stage(NamedTuple):
    """A stage of one Beam component, or what one process does alone.

    Attributes:
      component: the component.
      name: the name of the stage.
      reviews: the number of reviews that it reads.
      per_unit: reviews of a unit; 0 if the stage has no units.
      cpu: CPU seconds per million reviews in the units.
      start: seconds before the first unit.
      alone: seconds of one process, which other slots cannot shorten.
      sent: bytes that pass through Flink.
    """

    component: str
    name: str
    reviews: float
    per_unit: float = 0.0
    cpu: float = 0.0
    start: float = 0.0
    alone: float = 0.0
    sent: float = 0.0


class Data(NamedTuple):
    """An input.

    Attributes:
      reviews: the number of its reviews.
      held_out: the fraction in files of their own for eval and test.
      max_examples: whether `data.max_examples` is set.
      all_statistics: whether `data.statistics_examples` is null.
    """

    reviews: int
    held_out: float = 0.1
    max_examples: bool = False
    all_statistics: bool = False

    @property
    def units(self) -> int:
        return math.ceil(self.reviews * COSTS["raw bytes per review"] / _BYTES_PER_UNIT)

    @property
    def shards(self) -> int:
        """Return the files of the Examples of all splits, and again of the transformed Examples."""
        return self.units * _SHARDS_PER_UNIT * _SPLITS

    @property
    def input_files(self) -> int:
        per_file = ASSUMED["bytes of an input file"] / COSTS["raw bytes per review"]
        return math.ceil(self.reviews / per_file)


def stages(data: Data) -> list[Stage]:
    """Return the stages of the Beam components in their order."""
    held_out = data.reviews * data.held_out
    per_unit = _BYTES_PER_UNIT / COSTS["raw bytes per review"]
    # Eight files of a split are a unit of Transform and of the Evaluator.
    per_file = data.reviews / data.shards
    open_file = ASSUMED["seconds to open or rename a file of an object store"]
    open_file /= ASSUMED["files that are opened or renamed at once"]
    start = COSTS["start of a job and its workers, s"]
    control = COSTS["bytes of a unit in the job"] + COSTS["bytes of a unit in done.json"]
    gen = "ReviewExampleGen"
    publish = data.shards * open_file
    cut = data.input_files * open_file
    found = [Stage(gen, "cut the files", data.reviews, start=start, alone=cut)]
    if held_out:
        sent = held_out * COSTS["HeldOutKeys, bytes per key"]
        cpu = COSTS["HeldOutKeys, CPU s per 1M"]
        found.append(Stage(gen, "HeldOutKeys", held_out, per_unit, cpu, sent=sent))
    if data.max_examples:
        sent = data.reviews * COSTS["RankKeys, bytes per review"]
        cpu = COSTS["RankKeys, CPU s per 1M"]
        found.append(Stage(gen, "RankKeys", data.reviews, per_unit, cpu, sent=sent))
    found += [
        Stage(
            gen,
            "ReadUnit",
            data.reviews,
            per_unit,
            COSTS["ReadUnit, CPU s per 1M"],
            sent=data.units * control,
        ),
        Stage(gen, "publish", data.reviews, alone=publish),
    ]
    if data.all_statistics:
        cpu = COSTS["StatisticsGen of all Examples, CPU s per 1M"]
        begin = COSTS["StatisticsGen of all Examples, start, s"]
        found.append(Stage("StatisticsGen", "all", data.reviews, per_file, cpu, begin))
    else:
        alone = data.reviews / 1e6 * COSTS["StatisticsGen of a sample, s per 1M"]
        found.append(Stage("StatisticsGen", "sample", data.reviews, alone=alone))
    units = data.shards / _FILES_PER_UNIT
    found += [
        Stage(
            "Transform",
            "TransformFiles",
            data.reviews,
            per_file * _FILES_PER_UNIT,
            COSTS["Transform, CPU s per 1M"],
            start,
            sent=units * control,
        ),
        Stage("Transform", "publish", data.reviews, alone=publish),
        Stage(
            "Evaluator",
            "SumFiles",
            data.reviews / 10,
            per_file * _FILES_PER_UNIT,
            COSTS["Evaluator, CPU s per 1M"],
            start,
            sent=data.reviews / 10 * COSTS["Evaluator, bytes per review"],
        ),
    ]
    return found


def seconds(stage: Stage, slots: int, seed: int = 0) -> float:
    """Return the simulated seconds of a stage."""
    chance = random.Random(f"{seed} {stage.component} {stage.name}")
    free = [0.0] * slots
    left = stage.reviews if stage.per_unit else 0.0
    while left > 0:
        busy = min(left, stage.per_unit) / 1e6 * stage.cpu * _slowness(chance)
        heapq.heapreplace(free, free[0] + busy)
        left -= stage.per_unit
    return stage.start + stage.alone + max(free)


def _slowness(chance: random.Random) -> float:
    """Return the time of a unit divided by its CPU time."""
    factor = chance.lognormvariate(
        0.0, ASSUMED["standard deviation of the logarithm of a unit's time"]
    )
    straggles = chance.random() < ASSUMED["fraction of stragglers"]
    return factor * (ASSUMED["time of a straggler / time of another unit"] if straggles else 1.0)


def bytes_at_one_place(data: Data) -> dict[str, float]:
    """Return what -> its bytes in a single process, for all that grows with the data."""
    keys = data.reviews * data.held_out
    files = data.shards / _FILES_PER_UNIT
    return {
        "held-out keys, side input in every worker": keys * COSTS["HeldOutKeys, bytes per key"],
        "JoinHeldOut, one worker": keys * COSTS["JoinHeldOut, peak bytes per key"],
        "max_examples: places, FindCap, one worker": data.reviews
        * COSTS["FindCap, peak bytes per review"]
        * data.max_examples,
        "units in the job of ReviewExampleGen": data.units * COSTS["bytes of a unit in the job"],
        "done.json of ReviewExampleGen": data.units * COSTS["bytes of a unit in done.json"],
        "blocks of a resumed epoch, one Trainer": data.reviews
        * COSTS["resumed epoch, bytes per review"],
        "done.json of Transform": files * COSTS["bytes of a unit in done.json"] / _SPLITS,
    }


def reviews_at(limit: float, data: Data) -> dict[str, float]:
    """Return what -> the number of reviews at which it has `limit` bytes in one process."""
    sizes = bytes_at_one_place(data._replace(reviews=10**9))
    return {what: limit / size * 1e9 for what, size in sizes.items() if size}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--reviews", type=_numbers, default=[10**8, 10**9])
    parser.add_argument("--slots", type=_numbers, default=[2, 16, 64, 256])
    parser.add_argument("--held-out", type=float, default=0.1, help="fraction in their files [0.1]")
    parser.add_argument("--max-examples", action="store_true", help="data.max_examples is set")
    parser.add_argument("--all-statistics", action="store_true", help="statistics_examples is null")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    console = wide_console()
    for count in arguments.reviews:
        data = Data(count, arguments.held_out, arguments.max_examples, arguments.all_statistics)
        console.print(_hours(data, arguments.slots, arguments.seed))
        console.print(_sizes(data, arguments.slots))
    table = Table("1 GiB in one process", Column("reviews", justify="right"))
    for what, at in reviews_at(GIB, data._replace(max_examples=True)).items():
        table.add_row(what, f"{at / 1e6:,.0f} million")
    console.print(table)


def _numbers(text: str) -> list[int]:
    return [int(float(word)) for word in text.split(",")]


def _hours(data: Data, slots: Sequence[int], seed: int) -> Table:
    titles = [f"{number} slots, h" for number in slots]
    table = Table(f"{data.reviews:,} reviews", *[Column(each, justify="right") for each in titles])
    total, serial = dict.fromkeys(slots, 0.0), 0.0
    for stage in stages(data):
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
    for what, size in bytes_at_one_place(data).items():
        table.add_row(f"{what}, MiB", f"{size / 2**20:,.0f}")
    sent = sum(stage.sent for stage in stages(data))
    side_input = data.reviews * data.held_out * COSTS["HeldOutKeys, bytes per key"]
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
