"""Measure the throughput of the input pipeline, of the model, and of both in a training.

    python -m benchmarks.input_pipeline TRAIN [--model NAME] [--passes N] [--set KEY=VALUE]

TRAIN is in Kaggle's fastText format, plain or .bz2. The real pipeline prepares it. Then each of
these measurements runs in a process of its own, on all cores:

    input alone      the batches of an epoch are read, shuffled and parsed, without a model
    model alone      the same model trains on batches in memory
    training         the last epoch of `python -m trainer_module.task`, without its validation

The first of several passes is a warm-up. The result is the fastest of the others. CPU s are the CPU
seconds of the process in that pass. Input and model share the cores, so an epoch of training takes
about the CPU time of both.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import peer_ours, usage
from benchmarks.strategies import MODELS
from trainer_module.settings import Training, TrainingJob

_IN_MEMORY = 32
"""Number of batches in memory, with which the model alone trains repeatedly."""


def main() -> None:
    if sys.argv[1:2] in (["input"], ["model"]):
        print(json.dumps(_alone(*sys.argv[1:])))
        return
    arguments = _arguments()
    console = usage.wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        root = Path(folder)
        files = {"train": arguments.train}
        job = peer_ours.prepare(root / "prepared", files, arguments.model, arguments.set)
        epochs = {"epochs": arguments.passes, "schedule": "constant"}
        training = Training.model_validate(job.training.model_dump() | epochs)
        job = job.model_copy(update={"training": training})
        (root / "job.json").write_text(job.model_dump_json())
        figures = {}
        for name in ("input", "model"):
            console.print(f"{name} alone …")
            figures[f"{name} alone"] = usage.figures_of(
                "benchmarks.input_pipeline", name, str(root / "job.json"), log=root / "log"
            )
        console.print("training …")
        figures["training"] = _training(peer_ours.train(job, root / "training"))
    console.print(table(figures))
    console.print(
        f"{arguments.model}, {arguments.train}, {usage.cores()} CPUs, load "
        f"{os.getloadavg()[0]:.1f} at the end"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("train", type=Path)
    parser.add_argument("--model", choices=MODELS, default=MODELS[0])
    parser.add_argument("--passes", type=int, default=4, help="2 or more [4]")
    parser.add_argument("--set", default=[], action="append", help="settings, KEY=VALUE")
    parser.add_argument("--scratch", help="folder for temporary files")
    return parser.parse_args()


def table(figures: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a table of the measurements; the ratio is the speed relative to that of training."""
    drawn = Table("", "s", "Examples/s", "CPU s per 100,000", "times training")
    rates = {name: row["examples"] / row["seconds"] for name, row in figures.items()}
    for name, row in figures.items():
        cpu = row.get("cpu_seconds")
        drawn.add_row(
            name,
            f"{row['seconds']:.2f}",
            f"{rates[name]:,.0f}",
            "" if cpu is None else f"{cpu / row['examples'] * 100_000:.2f}",
            f"{rates[name] / rates['training']:.2f}",
        )
    return drawn


def _training(figures: dict[str, Any]) -> dict[str, Any]:
    return {"examples": figures["examples"], "seconds": min(figures["seconds_per_epoch"][1:])}


def _alone(part: str, job: str) -> dict[str, Any]:
    from trainer_module import models, strategies
    from trainer_module.cluster.collective import Collective
    from trainer_module.inputs.dataset import Inputs
    from trainer_module.training import build_model

    parsed = TrainingJob.model_validate_json(Path(job).read_text())
    strategy, _ = strategies.make_strategy(parsed.training, None)
    module = models.load(parsed.training.model)
    alone = Collective(strategy, None)
    inputs = Inputs(parsed, module.FEATURES, strategy, None, alone, static_shapes=False)
    if part == "input":
        return _input_alone(parsed, inputs)
    return _model_alone(
        parsed, inputs, build_model(parsed, module, inputs, strategy, static_shapes=False)
    )


def _input_alone(job: TrainingJob, inputs: Any) -> dict[str, Any]:
    batches = iter(inputs.train_dataset(0))

    def one_pass() -> None:
        for _ in range(inputs.steps):
            next(batches)

    return _fastest(one_pass, job.training.epochs, inputs.train.examples)


def _model_alone(job: TrainingJob, inputs: Any, model: Any) -> dict[str, Any]:
    import tensorflow as tf

    from trainer_module.loop.steps import train_step

    step = tf.function(train_step(model), reduce_retracing=True)
    batches = iter(inputs.train_dataset(0))
    held = [next(batches) for _ in range(min(_IN_MEMORY, inputs.steps))]

    def one_pass() -> None:
        for number in range(inputs.steps):
            step(held[number % len(held)])

    return _fastest(one_pass, job.training.epochs, inputs.train.examples)


def _fastest(action: Callable[[], None], passes: int, examples: int) -> dict[str, Any]:
    runs = []
    for _ in range(passes):
        wall, cpu = time.perf_counter(), time.process_time()
        action()
        runs.append((time.perf_counter() - wall, time.process_time() - cpu))
    seconds, cpu_seconds = min(runs[1:])
    return {"examples": examples, "seconds": seconds, "cpu_seconds": cpu_seconds}


if __name__ == "__main__":
    main()
