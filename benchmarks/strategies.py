"""Train one model with each distribution strategy that this machine supports.

    python -m benchmarks.strategies TRAIN [--eval FILE] [--model NAME] [--batches 512 2048]
                                    [--devices 2 4 8] [--only STRATEGY …] [--json FILE]

TRAIN is in Kaggle's fastText format, plain or .bz2; without --eval a tenth of it is held out. Each
row is one `python -m trainer_module.task`. s/epoch is the time of training in the last epoch,
without its validation; the first epoch also traces the graph. Examples a second is the number of
Examples in an epoch, divided by s/epoch.

Scaling efficiency is the row's Examples a second, divided by that of one_device with the same batch
per replica, and by the amount of hardware. The amount is the number of GPUs. On a machine without
GPUs it is 1, because all rows share the same CPU cores; an efficiency of 1.0 then means that the
distribution has no cost. The row of two workers, each with half of the cores, compares two small
processes with a large one.

CPU utilisation is the fraction of all cores that the processes of the row use, from the first step
to the end of the last validation, including tracing and checkpoints. A server stores variables of
the model and of its optimizer.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.table import Column, Table

from benchmarks import peer_ours, usage
from preprocessing import features
from trainer_module import models
from trainer_module.settings import MODELS, TrainingJob

LARGE_TABLE = 2**24
"""Rows of an n-gram table that is large enough for several servers to share it."""
_MILLION = 1_000_000


@dataclasses.dataclass(frozen=True)
class Setup:
    """One row to measure.

    The amount of hardware is relative to one_device. A large n-gram table has LARGE_TABLE rows.
    """

    name: str
    devices: str
    settings: dict[str, Any]
    hardware: int = 1
    large_table: bool = False


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of one training: its training.json, and the CPU utilisation of all processes."""

    setup: Setup
    figures: dict[str, Any]
    cpu_utilisation: float

    @property
    def epoch_seconds(self) -> float:
        return self.figures["seconds_per_epoch"][-1]

    @property
    def examples_per_second(self) -> float:
        return self.figures["examples"] / self.epoch_seconds

    @property
    def batch(self) -> int:
        return self.figures["batch_size_per_replica"]


def setups(gpus: int, logical: Sequence[int] = (2,)) -> list[Setup]:
    """Return the rows that a machine supports.

    Each worker requires a GPU of its own, so a machine with one GPU supports no cluster.
    """
    kind, on_all = ("GPU" if gpus else "CPU"), max(1, gpus)
    one_process = [
        Setup("one_device", f"1 {kind}", {"strategy": "one_device"}),
        *(
            Setup(name, f"{several} {kind}", {"strategy": name, "devices": several}, on_all)
            for name in ("mirrored", "central_storage")
            for several in ([gpus] if gpus else logical)
        ),
    ]
    if gpus == 1:
        return one_process
    on_two = min(2, on_all)
    workers = {"strategy": "multi_worker_mirrored", "workers": 2}
    one_server = {"strategy": "parameter_server", "workers": 2, "parameter_servers": 1}
    two_servers = one_server | {"parameter_servers": 2}
    return [
        *one_process,
        Setup("multi_worker_mirrored", "2 workers", workers, on_two),
        Setup("parameter_server", "2 workers, 1 ps", one_server, on_two),
        Setup("parameter_server", "2 workers, 2 ps", two_servers, on_two),
        Setup("large_table", "2 workers, 2 ps", two_servers, on_two, large_table=True),
    ]


def scaling_efficiency(row: Row, rows: list[Row]) -> float | None:
    """Return the efficiency as this module's docstring defines it; None without one_device."""
    for other in rows:
        if other.setup.name == "one_device" and other.batch == row.batch:
            return row.examples_per_second / (other.examples_per_second * row.setup.hardware)
    return None


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    gpus = usage.gpus()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        try:
            for row in _measure(arguments, gpus, Path(folder)):
                rows.append(row)
                console.print(f"{row.setup.name}: {row.epoch_seconds:.1f} s/epoch")
        finally:
            # Print the measured rows even if a later row fails.
            console.print(table(rows))
    usage.print_machine(console, f"{arguments.model}, {arguments.train}")
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    names = list(dict.fromkeys(setup.name for setup in setups(0)))
    parser.add_argument("train", type=Path)
    parser.add_argument("--eval", type=Path, help="reviews to validate on [a tenth of TRAIN]")
    parser.add_argument("--model", choices=MODELS, default=MODELS[0])
    parser.add_argument(
        "--batches", nargs="+", type=int, default=[1024], help="batch sizes per replica [1024]"
    )
    parser.add_argument("--epochs", type=int, default=2, help="epochs of each training [2]")
    parser.add_argument(
        "--devices",
        nargs="+",
        type=int,
        default=[2],
        help="logical devices of a CPU under mirrored and central_storage [2]",
    )
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    return parser.parse_args()


def _measure(arguments: argparse.Namespace, gpus: int, root: Path) -> Iterator[Row]:
    jobs: dict[bool, TrainingJob] = {}
    for batch in arguments.batches:
        for setup in setups(gpus, arguments.devices):
            if setup.name not in arguments.only:
                continue
            if setup.large_table and features.NGRAMS not in models.load(arguments.model).FEATURES:
                continue  # The model has no n-gram table.
            if setup.large_table not in jobs:
                jobs[setup.large_table] = _prepare(arguments, setup, root)
            training = {"batch_size_per_replica": batch, "epochs": arguments.epochs}
            job = peer_ours.with_training(jobs[setup.large_table], training | setup.settings)
            yield _train(setup, job, root / f"{setup.name}-{setup.devices}-{batch}")


def _prepare(arguments: argparse.Namespace, setup: Setup, root: Path) -> TrainingJob:
    files = {"train": arguments.train}
    if arguments.eval:
        files["eval"] = arguments.eval
    overrides = list(arguments.set)
    if setup.large_table:
        overrides.append(f"transform.ngram_buckets={LARGE_TABLE}")
    folder = root / f"prepared-{setup.large_table}"
    return peer_ours.prepare(folder, files, arguments.model, overrides)


def _train(setup: Setup, job: TrainingJob, folder: Path) -> Row:
    with usage.ProcessTree() as tree:
        figures = peer_ours.train(job, folder)
    start, end = _training_interval(folder)
    return Row(setup, figures, tree.cpu_seconds(start, end) / (end - start) / usage.cores())


def _training_interval(folder: Path) -> tuple[float, float]:
    """Return the times before the first step and after the last evaluation, in epoch seconds."""
    # The chief opens events.out.tfevents.SECONDS.HOST… before the first step.
    opened = [int(file.name.split(".")[3]) for file in folder.rglob("events.out.tfevents.*")]
    return min(opened), (folder / peer_ours.SUMMARY).stat().st_mtime


def table(rows: list[Row]) -> Table:
    """Return a table with a row for each training, beginning with the columns of the reference."""
    numbers = (
        "batch per replica",
        "s/epoch",
        "val_loss",
        "val_accuracy",
        "s per 1M",
        "CPU",
        "efficiency",
        "MiB on each server",
    )
    texts = [Column(name, no_wrap=True) for name in ("strategy", "devices")]
    drawn = Table(*texts, *[Column(name, justify="right") for name in numbers])
    for row in rows:
        drawn.add_row(
            row.setup.name,
            row.setup.devices,
            str(row.batch),
            f"{row.epoch_seconds:.1f}",
            f"{row.figures['val_loss']:.4f}",
            f"{row.figures['val_accuracy']:.4f}",
            f"{_MILLION / row.examples_per_second:.0f}",
            _share(row.cpu_utilisation),
            _share(scaling_efficiency(row, rows)),
            ", ".join(
                f"{size / usage.MEBIBYTE:.1f}"
                for size in row.figures.get("parameter_server_bytes", [])
            ),
        )
    return drawn


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
