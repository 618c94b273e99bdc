"""One epoch of our models, next to the epochs that the reference experiment reported.

    python -m benchmarks.reference_table TRAIN EVAL [--models NAME …] [--batches 512 2056]
                                         [--set KEY=VALUE] [--json FILE]
    python -m benchmarks.reference_table --from FOLDER [--train N] [--eval N] …

The experiment trained the reference CNN-LSTM on 1,000,000 reviews and validated it on 360,000.
TRAIN and EVAL are in Kaggle's fastText format, plain or .bz2. With --from, files of N [1000000 and
360000] different reviews are made from train.ft.txt and test.ft.txt in FOLDER (see
`benchmarks.whole_files`).

s/epoch of our models includes everything except imports: counting and reading the TFRecords that
Transform wrote, building and tracing the model, training, validation, checkpoints. The reported
seconds are those of Keras for an epoch on token ids in memory. The last columns are reported /
ours. The reported models were trained on other hardware and, with --from, on other reviews. The
seconds can always be compared, but the accuracies only for the files of the experiment.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Column, Table

from benchmarks import peer_ours, usage, whole_files
from trainer_module.settings import MODELS

_TRAIN, _EVAL = 1_000_000, 360_000


@dataclasses.dataclass(frozen=True)
class Epoch:
    """An epoch. The name of a reported one is its hardware, the name of a measured one our model.

    `training` is the number of seconds of the training steps alone; None for a reported epoch.
    """

    name: str
    batch: int
    seconds: float
    val_loss: float
    val_accuracy: float
    training: float | None = None


REPORTED = (
    Epoch("2-core CPU", 512, 6171, 0.2168, 0.9129),
    Epoch("1 P100", 512, 1321, 0.2137, 0.9138),
    Epoch("1 P100", 2056, 390, 0.2251, 0.9092),
    Epoch("TPU, 8 cores", 512, 106, 0.2345, 0.9049),
    Epoch("TPU, 8 cores", 2056, 100, 0.2823, 0.8856),
)
"""The first epoch of the reference CNN-LSTM."""


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    epochs: list[Epoch] = []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        train, held_out = _files(arguments, Path(folder))
        try:
            for epoch in _measure(arguments, train, held_out, Path(folder)):
                epochs.append(epoch)
                console.print(f"{epoch.name}, batch {epoch.batch}: {epoch.seconds:.1f} s")
        finally:
            # Print the measured epochs even if a later one fails.
            console.print(table(epochs))
    usage.print_machine(console, arguments.source or arguments.train_file)
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(e) for e in epochs], indent=1))


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("train_file", type=Path, nargs="?", metavar="TRAIN")
    parser.add_argument("eval_file", type=Path, nargs="?", metavar="EVAL")
    parser.add_argument("--from", type=Path, dest="source", help="folder with other reviews")
    parser.add_argument("--train", type=int, default=_TRAIN, help=f"train reviews [{_TRAIN}]")
    parser.add_argument("--eval", type=int, default=_EVAL, help=f"eval reviews [{_EVAL}]")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[MODELS[0], "cnn_lstm"])
    parser.add_argument("--batches", nargs="+", type=int, default=[512, 2056])
    arguments = parser.parse_args()
    if (arguments.eval_file is None) == (arguments.source is None):
        parser.error("requires either TRAIN and EVAL, or --from")
    if arguments.source:
        whole_files.check_source(parser, arguments.source)
    return arguments


def _files(arguments: argparse.Namespace, root: Path) -> Sequence[Path]:
    """Return the paths of the train and the eval file; create the files with --from."""
    if not arguments.source:
        return arguments.train_file, arguments.eval_file
    words = [arguments.source.resolve(), root, arguments.train, arguments.eval]
    # In a process of its own, because the sentences take memory.
    usage.run_module("benchmarks.whole_files", *map(str, words), log=root / "log")
    return [root / name for name in whole_files.NAMES]


def _measure(
    arguments: argparse.Namespace, train: Path, held_out: Path, root: Path
) -> Iterator[Epoch]:
    files = {"train": train, "eval": held_out}
    for model in arguments.models:
        job = peer_ours.prepare(root / model, files, model, arguments.set)
        for batch in arguments.batches:
            changes = {"epochs": 1, "batch_size_per_replica": batch}
            figures = peer_ours.fit_seconds(
                peer_ours.with_training(job, changes), root / f"{model}-{batch}"
            )
            yield Epoch(
                model,
                batch,
                figures["fit_seconds"],
                figures["val_loss"],
                figures["val_accuracy"],
                training=figures["seconds_per_epoch"][0],
            )


def table(ours: Sequence[Epoch]) -> Table:
    """Return a table of the reported epochs and ours, with the ratios of seconds to ours."""
    titles = ("batch per replica", "s/epoch", "training, s", "val_loss", "val_accuracy")
    ratios = [f"s / {epoch.name} {epoch.batch}" for epoch in ours]
    drawn = Table(
        Column("hardware or model", no_wrap=True),
        *[Column(title, justify="right") for title in (*titles, *ratios)],
    )
    for epoch in (*REPORTED, *ours):
        drawn.add_row(
            epoch.name,
            str(epoch.batch),
            f"{epoch.seconds:.1f}",
            "" if epoch.training is None else f"{epoch.training:.1f}",
            f"{epoch.val_loss:.4f}",
            f"{epoch.val_accuracy:.4f}",
            *[f"{epoch.seconds / each.seconds:.2f}" for each in ours],
        )
    return drawn


if __name__ == "__main__":
    main()
