"""A simulation of the Beam components on large inputs.

Every stage divides its reviews into units, as the code does. A unit goes to the slot that is free
first, and some units are stragglers. What one process does alone comes before or after the units.
The stages run one after the other. `COSTS` and `JOBS` have the measurements, `ASSUMED` what was not
measured.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

GIB = 2**30
COSTS = {
    # `python -m benchmarks.scale_costs FILES`, 200,000 reviews.
    "raw bytes per review": 718.0,
    "output bytes per review": 418.0,
    "bytes of a unit in the job": 784.0,
    "bytes of a unit in done.json": 2_902.0,
    "ReadUnit, CPU s per 1M": 24.8,
    "HeldOutKeys, CPU s per 1M": 4.9,
    "HeldOutKeys, bytes per key": 8.0,
    "JoinHeldOut, peak bytes per key": 33.0,
    "InRanges, CPU s per 1M": 0.2,
    "InRanges, bytes per key": 9.4,
    "JoinRange, CPU s per 1M": 0.1,
    "JoinRange, peak bytes per key": 20.0,
    # The sums of six slices of 65,536 reviews, 380 kB each.
    "Evaluator, bytes per review": 35.0,
    "RankKeys, CPU s per 1M": 5.1,
    "RankKeys, bytes of a unit": 34_000.0,
    "RankEdges, CPU s per 1M": 0.01,
    "FindCap, peak bytes per rank": 24.0,
    # `python -m benchmarks.beam_runners`, 200,000 reviews: the earlier run on the page of scale.
    # `direct` without that of 3,000 reviews.
    "Transform, CPU s per 1M": 38.0,
    # The same with `local`, because all Examples pass through Flink.
    "StatisticsGen of all Examples, CPU s per 1M": 97.0,
    # The same: CPU seconds of `one` without `direct`.
    "StatisticsGen of all Examples, start, s": 86.5 - 15.2,
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
JOBS = {
    "ReviewExampleGen": (16.6, 40.9),
    "Transform": (43.2, 63.4),
    "Evaluator": (7.5, 25.0),
}
"""Component -> its seconds on the direct runner and on one TaskManager with one slot, for the same
files: `python -m benchmarks.beam_runners`, 2,000,000 reviews. The difference is the start of a job
and its workers; much of it is waiting, so its CPU seconds are fewer. It is an upper limit, as
the direct runner uses the second core too. `jobs_of` returns the figures from the output of
`--json`."""
ASSUMED = {
    "seconds to open or rename a file of an object store": 0.05,
    "files that are opened or renamed at once": 16,
    "fraction of stragglers": 0.05,
    "time of a straggler / time of another unit": 3.0,
    "standard deviation of the logarithm of a unit's time": 0.1,
    "bytes of an input file": 128 << 20,
}
_BYTES_PER_UNIT = 128 << 20
_BROADCAST_BYTES = 4 << 30
_BYTES_PER_RANGE = 512 << 20
_BUCKETS = 1 << 12
_SHARDS_PER_UNIT = 8
_SPLITS = 3
_FILES_PER_UNIT = 8
SIDE_INPUT = "held-out keys, side input in every worker"


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
    def broadcast(self) -> bool:
        """Return whether the held-out keys are joined by broadcast, and not by shuffle."""
        text = self.reviews * self.held_out * COSTS["raw bytes per review"]
        return text <= _BROADCAST_BYTES

    @property
    def shards(self) -> int:
        """Return the files of the Examples of all splits, and again of the transformed Examples."""
        return self.units * _SHARDS_PER_UNIT * _SPLITS

    @property
    def input_files(self) -> int:
        per_file = ASSUMED["bytes of an input file"] / COSTS["raw bytes per review"]
        return math.ceil(self.reviews / per_file)


def jobs_of(figures: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return the same as `JOBS` from `python -m benchmarks.beam_runners --only direct,one --json`.

    Raises:
      KeyError: the file lacks the direct runner, `one` or a component.
    """
    direct, one = figures["direct"]["seconds"], figures["one"]["seconds"]
    return {component: (direct[component], one[component]) for component in JOBS}


def stages(data: Data, jobs: Mapping[str, tuple[float, float]] = JOBS) -> list[Stage]:
    """Return the stages of the Beam components in their order.

    Args:
      data: the input.
      jobs: the seconds from which the start of each job is computed, see `JOBS`.
    """
    start = {component: max(one - direct, 0.0) for component, (direct, one) in jobs.items()}
    held_out = data.reviews * data.held_out
    per_unit = _BYTES_PER_UNIT / COSTS["raw bytes per review"]
    # Eight files of a split are a unit of Transform and of the Evaluator.
    per_file = data.reviews / data.shards
    open_file_alone = ASSUMED["seconds to open or rename a file of an object store"]
    open_file = open_file_alone / ASSUMED["files that are opened or renamed at once"]
    control = COSTS["bytes of a unit in the job"] + COSTS["bytes of a unit in done.json"]
    gen = "ReviewExampleGen"
    publish = data.shards * open_file
    cut = data.input_files * open_file
    found = [Stage(gen, "cut the files", data.reviews, start=start[gen], alone=cut)]
    if held_out and data.broadcast:
        sent = held_out * COSTS["HeldOutKeys, bytes per key"]
        cpu = COSTS["HeldOutKeys, CPU s per 1M"]
        found.append(Stage(gen, "HeldOutKeys", held_out, per_unit, cpu, sent=sent))
    elif held_out:
        cpu = COSTS["HeldOutKeys, CPU s per 1M"] + COSTS["InRanges, CPU s per 1M"]
        sent = data.reviews * COSTS["InRanges, bytes per key"]
        found.append(Stage(gen, "AllKeys", data.reviews, per_unit, cpu, sent=sent))
        per_range = _BYTES_PER_RANGE / COSTS["raw bytes per review"]
        cpu = COSTS["JoinRange, CPU s per 1M"]
        found.append(Stage(gen, "JoinRange", data.reviews, per_range, cpu))
    if data.max_examples:
        sent = data.units * COSTS["RankKeys, bytes of a unit"]
        cpu = COSTS["RankKeys, CPU s per 1M"]
        found.append(Stage(gen, "RankKeys", data.reviews, per_unit, cpu, sent=sent))
        # Each unit has one file of places.
        cpu = COSTS["RankEdges, CPU s per 1M"] + open_file_alone / per_unit * 1e6
        found.append(Stage(gen, "RankEdges", data.reviews, per_unit, cpu))
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
            start["Transform"],
            sent=units * control,
        ),
        Stage("Transform", "publish", data.reviews, alone=publish),
        Stage(
            "Evaluator",
            "SumFiles",
            data.reviews / 10,
            per_file * _FILES_PER_UNIT,
            COSTS["Evaluator, CPU s per 1M"],
            start["Evaluator"],
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
    files = data.shards / _FILES_PER_UNIT
    return {
        "max_examples: ranks, FindCap, one worker": data.reviews
        / _BUCKETS
        * COSTS["FindCap, peak bytes per rank"]
        * data.max_examples,
        "units in the job of ReviewExampleGen": data.units * COSTS["bytes of a unit in the job"],
        "done.json of ReviewExampleGen": data.units * COSTS["bytes of a unit in done.json"],
        "blocks of a resumed epoch, one Trainer": data.reviews
        * COSTS["resumed epoch, bytes per review"],
        "done.json of Transform": files * COSTS["bytes of a unit in done.json"] / _SPLITS,
    }


def bytes_of_held_out(data: Data) -> dict[str, float]:
    """Return what -> its bytes in a single process, for the held-out keys, which are bounded."""
    if not data.broadcast:
        keys = min(data.reviews, _BYTES_PER_RANGE / COSTS["raw bytes per review"])
        return {"JoinRange, one worker": keys * COSTS["JoinRange, peak bytes per key"]}
    keys = data.reviews * data.held_out
    return {
        SIDE_INPUT: keys * COSTS["HeldOutKeys, bytes per key"],
        "JoinHeldOut, one worker": keys * COSTS["JoinHeldOut, peak bytes per key"],
    }


def reviews_at(limit: float, data: Data) -> dict[str, float]:
    """Return what -> the number of reviews at which it has `limit` bytes in one process."""
    sizes = bytes_at_one_place(data._replace(reviews=10**9))
    return {what: limit / size * 1e9 for what, size in sizes.items() if size}
