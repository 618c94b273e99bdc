"""Measure stages without Beam: the costs that `benchmarks.scale` computes with.

    python -m benchmarks.scale_costs FILE [FILE ...]

The files are in Kaggle's fastText format, plain or bz2. CPU seconds are those of this process with
its threads. The sums are those of a slice of 65,536 reviews with the default metrics, for a
candidate and a baseline.
"""

from __future__ import annotations

import argparse
import os
import pickle
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from apache_beam.coders import FastPrimitivesCoder
from rich.table import Column, Table
from tensorflow_model_analysis.utils import update_eval_config_with_defaults

from benchmarks.usage import wide_console
from components.evaluator import tfma_internals
from components.evaluator.sums import Pairs
from components.review_example_gen import splits, stages
from components.review_example_gen.units import Source, in_units
from pipeline.config import PipelineConfig
from pipeline.evaluation import eval_config
from preprocessing.reading.columns import Layout
from preprocessing.reading.cut import cut_file

_REVIEWS_OF_SUMS = 1 << 16


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
        done, seconds = _timed(lambda unit: read.process(unit, {}, splits.Cap()), units)
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

    keys, seconds = _timed(stages.HeldOutKeys().process, held_out_units)
    size = sum(len(coder.encode(pair)) for pair in keys)
    table.add_row(
        "HeldOutKeys", f"{seconds / reviews * 1e6:.1f}", f"{size / reviews:.1f}", "sent per review"
    )
    peak, held = _peak(lambda: splits.held_out_keys(keys))
    size = sum(array.nbytes for array in held.values())
    table.add_row("side input", "", f"{size / reviews:.1f}", "key in every worker")
    table.add_row("JoinHeldOut", "", f"{peak / reviews + size / reviews:.1f}", "peak per key")

    rank = stages.RankKeys(frozenset())
    found, seconds = _timed(lambda unit: rank.process(unit, {}), units)
    places = [pair for pair in found if isinstance(pair, tuple)]
    lines = [output.value for output in found if not isinstance(output, tuple)]
    size = sum(place.keys.nbytes + place.positions.nbytes for _, place in places)
    table.add_row(
        "RankKeys", f"{seconds / reviews * 1e6:.1f}", f"{size / reviews:.1f}", "sent per review"
    )
    peak, _ = _peak(lambda: splits.find_cap(places, lines, {"train": reviews // 2}))
    table.add_row("FindCap", "", f"{(peak + size) / reviews:.1f}", "peak per review")
    table.add_row("sums", "", f"{_bytes_of_sums():,}", "slice of the Evaluator")
    wide_console().print(table)


def _bytes_of_sums() -> int:
    config = update_eval_config_with_defaults(eval_config(PipelineConfig()), has_baseline=True)
    chance = np.random.default_rng(0)
    labels = chance.integers(0, 2, _REVIEWS_OF_SUMS).astype(np.float64)
    scores = np.clip(0.9 * labels + 0.05 + chance.normal(0, 0.1, len(labels)), 0, 1)
    pairs = Pairs(labels, scores)
    return len(pickle.dumps([item.sums.of(pairs) for item in tfma_internals.combined(config)]))


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
