"""Train our models and their peers on the same files, one after the other, each in a process.

    python -m benchmarks.peers TRAIN TEST [--only PEER,…] [--reference-steps N | --reference-full]
                               [--repeat K] [--set KEY=VALUE] [--json FILE]

TRAIN and TEST are in Kaggle's fastText format, plain or .bz2. Train seconds are the time from the
peer's own input format to a trained model:

  fasttext      from its prepared text file on disk
  scikit-learn  from texts in memory: vectorizing and fitting
  reference     from padded token ids in memory; by default some steps are timed and extrapolated
  ours          from the TFRecords that Transform wrote, through the input pipeline

The time excludes imports, validation and export. Our models train on nine tenths of TRAIN, the
default split, so the comparison is by seconds per 1M reviews of the training. For fastText and ours
the table also has the seconds of one pass. Peak RSS is that of the training process. The accuracy
of our models is measured with `predict_text` of the exported SavedModel. Seconds depend on the
machine and its load; quote only the ratio.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import tempfile
from pathlib import Path

from rich.table import Column, Table

from benchmarks import peer_ours, usage
from benchmarks.strategies import MODELS

PEERS = ("fasttext", "scikit-learn", "reference", *MODELS)
_DEFAULT = ("fasttext", "scikit-learn", "reference", "ngram_linear")
_MODULES = {
    "fasttext": "benchmarks.peer_fasttext",
    "scikit-learn": "benchmarks.peer_sklearn",
    "reference": "benchmarks.reference_cnn_lstm",
}
_MILLION = 1_000_000


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of one training.

    Attributes:
      peer: name of the peer, and the number of copies of the train file if more than one.
      seconds: seconds of the whole training.
      examples: number of different reviews in the training.
      epochs: passes over the reviews; None if the solver determines them.
      accuracy: accuracy on TEST; None if the training was not complete.
      peak_rss: peak memory in bytes.
      extrapolated: True if `seconds` is extrapolated.
    """

    peer: str
    seconds: float
    examples: int
    epochs: int | None
    accuracy: float | None
    peak_rss: int
    extrapolated: bool = False

    @property
    def seconds_per_million(self) -> float:
        return self.seconds / self.examples * _MILLION

    @property
    def epoch_seconds_per_million(self) -> float | None:
        return self.seconds_per_million / self.epochs if self.epochs else None


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    results = []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        for name in arguments.only:
            console.print(name)
            if name in MODELS:
                results += _ours(name, arguments, Path(folder) / name)
            else:
                results.append(_peer(name, arguments, Path(folder) / "log"))
    console.print(table(results))
    console.print(f"{arguments.train}, {usage.cores()} CPUs, Python {platform.python_version()}")
    if arguments.json:
        arguments.json.write_text(json.dumps([dataclasses.asdict(r) for r in results], indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument(
        "--only",
        type=usage.some_of(PEERS),
        default=_DEFAULT,
        help=f"peers, of {', '.join(PEERS)} [{','.join(_DEFAULT)}]",
    )
    reference = parser.add_mutually_exclusive_group()
    reference.add_argument(
        "--reference-steps", type=int, default=30, help="steps of the reference to time [30]"
    )
    reference.add_argument(
        "--reference-full", action="store_true", help="train the reference for a whole epoch"
    )
    parser.add_argument(
        "--repeat", type=int, default=1, help="train ngram_linear also on K copies of TRAIN"
    )
    parser.add_argument("--set", default=[], action="append", help="settings for ours, KEY=VALUE")
    parser.add_argument("--json", type=Path, help="output file for the figures")
    parser.add_argument("--scratch", help="folder for temporary files")
    return parser.parse_args()


def _peer(name: str, arguments: argparse.Namespace, log: Path) -> Result:
    words = [str(path.resolve()) for path in (arguments.train, arguments.test)]
    if name == "reference" and not arguments.reference_full:
        words += ["--steps", str(arguments.reference_steps)]
    figures = usage.figures_of(_MODULES[name], *words, log=log)
    if name == "reference":
        # `seconds` of the reference are those of the timed steps.
        figures |= {"seconds": figures["seconds_per_epoch"], "epochs": 1}
    return Result(
        peer=name,
        seconds=figures["seconds"],
        examples=figures["examples"],
        epochs=figures.get("epochs"),
        accuracy=figures["accuracy"],
        peak_rss=figures["peak_rss"],
        extrapolated=figures.get("extrapolated", False),
    )


def _ours(model: str, arguments: argparse.Namespace, root: Path) -> list[Result]:
    """Prepare once and train; train the first of our models also on K copies of TRAIN."""
    files = {"train": arguments.train, "test": arguments.test}
    job = peer_ours.prepare(root, files, model, arguments.set)
    results = []
    for times in sorted({1, arguments.repeat if model == MODELS[0] else 1}):
        folder = root / f"times-{times}"
        figures = peer_ours.train(
            peer_ours.repeated(job, times, root / f"links-{times}") if times > 1 else job, folder
        )
        results.append(
            Result(
                peer=model if times == 1 else f"{model}, {times} x TRAIN",
                seconds=figures["seconds"],
                examples=figures["examples"],
                epochs=figures["epochs"],
                accuracy=peer_ours.accuracy(folder, arguments.test),
                peak_rss=figures["peak_rss_bytes"],
            )
        )
    return results


def table(results: list[Result]) -> Table:
    """Return a table of the results; the ratio to ours is by whole trainings, per review."""
    drawn = Table(
        Column("peer", no_wrap=True),
        *[
            Column(title, justify="right")
            for title in (
                "train, s",
                "s per 1M reviews",
                "one epoch, s per 1M",
                "accuracy",
                "peak RSS, MiB",
                "s per 1M / ours",
            )
        ],
    )
    ours = next((r.seconds_per_million for r in results if r.peer == MODELS[0]), None)
    for result in results:
        epoch = result.epoch_seconds_per_million
        drawn.add_row(
            result.peer,
            f"{'~' if result.extrapolated else ''}{result.seconds:.1f}",
            f"{result.seconds_per_million:.0f}",
            f"{epoch:.0f}" if epoch else "",
            f"{result.accuracy:.4f}" if result.accuracy is not None else "",
            f"{result.peak_rss / usage.MEBIBYTE:.0f}",
            f"{result.seconds_per_million / ours:.2f}" if ours else "",
        )
    return drawn


if __name__ == "__main__":
    main()
