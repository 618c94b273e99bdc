"""Times how fast training is fed, beside how fast it eats; on the machine that it is run on.

    python -m benchmarks.input_pipeline TRAIN [--model NAME] [--passes N] [--set KEY=VALUE]

TRAIN is in Kaggle's fastText format, plain or .bz2. The real pipeline prepares it; then, each in a
process of its own and with all cores:

    input alone      the batches of an epoch are read, shuffled and parsed, and thrown away
    model alone      the same model trains on batches that are in memory already
    training         the last epoch of `python -m trainer_module.task`, without its validation

The first of several passes warms up and does not count; of the others the fastest does. CPU s are
those of the process over the same time: input and model share the cores, so an epoch of training
takes about as much CPU as both.
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
"""Batches that the model alone is given again and again."""


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
    parser.add_argument("--scratch", help="where files are kept while they are measured")
    return parser.parse_args()


def table(figures: Mapping[str, Mapping[str, Any]]) -> Table:
    """A row for each; the ratio is how many times as fast as training it is."""
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
    from trainer_module import models
    from trainer_module.distribute import strategies
    from trainer_module.distribute.agreement import Agreement
    from trainer_module.feeding.inputs import Inputs
    from trainer_module.training import build_model

    told = TrainingJob.model_validate_json(Path(job).read_text())
    strategy = strategies.make_strategy(told.training, None)
    module = models.load(told.training.model)
    alone = Agreement(strategy, None)
    inputs = Inputs(told, module.FEATURES, strategy, None, alone, static_shapes=False)
    if part == "input":
        return _input_alone(told, inputs)
    return _model_alone(
        told, inputs, build_model(told, module, inputs, strategy, static_shapes=False)
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
