"""Measure stages without Beam: the costs that `benchmarks.scale` computes with.

    python -m benchmarks.scale_costs FILE [FILE ...]

The files are in Kaggle's fastText format, plain or bz2. CPU seconds are those of this process with
its threads. The sums are the counts of a slice of 65,536 reviews, for a candidate and a
baseline.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from apache_beam.coders import FastPrimitivesCoder
from rich.table import Column, Table

from benchmarks.usage import wide_console
from components.evaluator.metrics import Counts
from components.review_example_gen import cap, held_out, ranks, stages
from components.review_example_gen.units import Source, Unit, in_units, lines_before
from preprocessing.reading.columns import Layout
from preprocessing.reading.cut import cut_file

_REVIEWS_OF_SUMS = 1 << 16
_KEYS_OF_RANGE = 750_000
"""The keys of 512 MiB of text."""
_KEYS_OF_PART = 140
"""The keys of a unit in a range, for 1 billion reviews."""
_RANKS_OF_UNIT, _UNITS = 45, 5_350
"""The ranks in a bucket, for 1 billion reviews."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    layout = Layout("fasttext")
    pieces = [piece for file in arguments.files for piece in cut_file(str(file.resolve()), layout)]
    units = in_units([Source("all", piece) for piece in pieces])
    # Files of the test split, in which each text has a key.
    held_out_units = in_units([Source("test", piece) for piece in pieces])
    coder = FastPrimitivesCoder()

    with tempfile.TemporaryDirectory() as folder:
        read = stages.ReadUnit(frozenset(), folder)
        done, seconds = _timed(lambda unit: read.process((unit, {}), {}, cap.Cap()), units)
        written = sum(file.stat().st_size for file in Path(folder).iterdir())
    reviews = sum(number for unit in done for _, _, number in unit.lines)
    table = Table(f"{reviews:,} lines", "CPU s per 1M", Column("bytes", justify="right"), "of what")
    table.add_row(
        "ReadUnit",
        f"{seconds / reviews * 1e6:.1f}",
        f"{written / reviews:.0f}",
        "output per review",
    )
    size = sum(len(coder.encode(unit)) for unit in units) / len(units)
    table.add_row("units", "", f"{size:,.0f}", f"each of {len(units)} units in the job")
    size = sum(len(coder.encode(unit)) for unit in done) / len(done)
    table.add_row("done.json", "", f"{size:,.0f}", "each unit")

    keys, seconds = _timed(held_out.ReadKeys().process, held_out_units)
    size = sum(len(coder.encode(found)) for found in keys)
    table.add_row(
        "HeldOutKeys, AllKeys",
        f"{seconds / reviews * 1e6:.1f}",
        f"{size / reviews:.1f}",
        "sent per review",
    )
    peak, joined = _peak(lambda: held_out.join_held_out(keys))
    size = sum(array.nbytes for array in joined.values())
    table.add_row("side input", "", f"{size / reviews:.1f}", "key in every worker")
    table.add_row("JoinHeldOut", "", f"{(peak + size) / reviews:.1f}", "peak per key")
    for row in _costs_of_shuffle(coder):
        table.add_row(*row)
    for row in _costs_of_cap(coder, units, reviews):
        table.add_row(*row)
    table.add_row("sums", "", f"{_bytes_of_sums():,}", "slice of the Evaluator")
    wide_console().print(table)


def _costs_of_shuffle(coder: FastPrimitivesCoder) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a shuffle join of random keys, a tenth of which are held out."""
    chance = np.random.default_rng(0)

    def keys_of(unit: int, count: int) -> held_out.Keys:
        keys = np.sort(chance.integers(0, 2**64, count, np.uint64))
        return held_out.Keys(unit, "train" if unit % 10 else "test", keys)

    count = _KEYS_OF_RANGE // _KEYS_OF_PART
    parts, seconds = _timed(
        lambda unit: [coder.encode(part) for part in held_out.in_ranges(unit, count)],
        [keys_of(0, _KEYS_OF_RANGE)],
    )
    size = sum(map(len, parts))
    _, decoding = _timed(lambda part: [coder.decode(part)], parts)
    yield (
        "InRanges",
        f"{(seconds + decoding) / _KEYS_OF_RANGE * 1e6:.1f}",
        f"{size / _KEYS_OF_RANGE:.1f}",
        "sent per key",
    )
    of_range = [keys_of(unit, _KEYS_OF_PART) for unit in range(count)]
    _, seconds = _timed(held_out.join_range, [of_range])
    # Beam has a range encoded and decoded.
    size = sum(len(coder.encode(part)) + part.keys.nbytes for part in of_range)
    peak, _ = _peak(lambda: list(held_out.join_range(of_range)))
    yield (
        "JoinRange",
        f"{seconds / _KEYS_OF_RANGE * 1e6:.1f}",
        f"{(peak + size) / _KEYS_OF_RANGE:.1f}",
        "peak per key",
    )


def _costs_of_cap(
    coder: FastPrimitivesCoder, units: list[Unit], reviews: int
) -> Iterator[tuple[str, ...]]:
    """Yield the rows of `data.max_examples` for the train split."""
    with tempfile.TemporaryDirectory() as folder:
        rank = cap.RankKeys(frozenset(), frozenset(["train"]), folder)
        found, seconds = _timed(lambda unit: rank.process((unit, {}), {}), units)
        written = sum(file.stat().st_size for file in Path(folder).iterdir())
        files = [output for output in found if isinstance(output, tuple)]
        tagged = [output for output in found if not isinstance(output, tuple)]
        size = sum(len(coder.encode(output)) for output in files)
        size += sum(len(coder.encode(output.value)) for output in tagged)
        yield (
            "RankKeys",
            f"{seconds / reviews * 1e6:.1f}",
            f"{size / len(units):,.0f}",
            "sent by a unit",
        )
        yield "", "", f"{written / reviews:.1f}", "written per review"
        before = lines_before(o.value for o in tagged if o.tag == cap.RankKeys.LINES)
        counts = [o.value[1] for o in tagged if o.tag == cap.RankKeys.COUNTS]
        edges = {"train": ranks.find_edge(ranks.sum_counts(counts), reviews // 2)}
        at_edge, seconds = _timed(lambda file: cap.read_ranks(file, edges, before), files)
        size = sum(len(array) for _, array in at_edge)
        yield (
            "RankEdges",
            f"{seconds / reviews * 1e6:.2f}",
            f"{reviews / size:,.0f}",
            "reviews for each rank",
        )
    found_ranks = [("train", np.arange(_RANKS_OF_UNIT, dtype=np.uint64))] * _UNITS
    count = _RANKS_OF_UNIT * _UNITS
    peak, _ = _peak(lambda: ranks.last_kept(found_ranks, {"train": ranks.Edge(0, count // 2)}))
    yield "FindCap", "", f"{(peak + count * 8) / count:.1f}", "peak per rank"


def _bytes_of_sums() -> int:
    chance = np.random.default_rng(0)
    labels = chance.integers(0, 2, _REVIEWS_OF_SUMS)
    scores = np.clip(0.9 * labels + 0.05 + chance.normal(0, 0.1, len(labels)), 0, 1)
    return len(pickle.dumps({name: Counts.of(labels, scores) for name in ("one", "other")}))


def _timed(
    process: Callable[[Any], Iterable[Any]], units: Iterable[Any]
) -> tuple[list[Any], float]:
    """Return the outputs of a DoFn, and the CPU seconds."""
    start = time.process_time()
    outputs = [output for unit in units for output in process(unit)]
    return outputs, time.process_time() - start


def _peak(function: Callable[[], Any]) -> tuple[int, Any]:
    """Return the greatest size of what a function allocates, in bytes, and its result."""
    tracemalloc.start()
    result = function()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak, result


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    main()
