"""Compare our models with their peers on folds: each review is held out once.

    python -m benchmarks.peer_folds FILE [--folds N] [the options of benchmarks.peers]

A held-out fifth of some thousand reviews decides little: the interval of its accuracy is wider than
the differences between good models. Here the different reviews of FILE are shuffled and divided
into N [5] folds. For each of them all peers train on the other folds, with the same options and
seeds, and are tested on it, as `benchmarks.peers` does. So an accuracy and a mean absolute error
have as many test reviews as FILE has different reviews.

FILE is a file that the pipeline reads, and of equal texts the first one counts. One train review in
50 is the eval split of our models, which does not train; the peers train on it too.

The table has the means over the folds, weighted by their test reviews, and macro-F1 is such a mean
too. A second table has each fold, with the means over the seeds.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Column, Table

from benchmarks import peer_ours, peer_results, peers, usage
from benchmarks.peer_results import Result
from trainer_module.settings import MODELS

_EVAL = 50
"""One train review in this number is in the eval split."""
_SCORES = ("accuracy", "macro_f1", "mean_absolute_error")


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    folds: list[list[Result]] = []
    sizes: list[int] = []
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        root = Path(folder)
        reviews = different_reviews(arguments, root / "all")
        for number in range(arguments.folds):
            console.print(f"fold {number + 1} of {arguments.folds}")
            files = write_fold(reviews, number, arguments.folds, root / f"fold-{number}")
            bench = peers.Bench(arguments, files, root / f"bench-{number}")
            folds.append(peers.train_all(bench, arguments.seeds, console))
            sizes.append(bench.test_reviews)
    pooled = pool(folds, sizes)
    console.print(peer_results.table(peer_results.by_peer(pooled, sum(sizes))))
    console.print(folds_table(folds, sizes))
    usage.print_machine(console, arguments.file)
    if arguments.json:
        peer_results.write(pooled, sum(sizes), arguments.json)


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--folds", type=int, default=5)
    peers.add_options(parser)
    return parser.parse_args()


def different_reviews(arguments: argparse.Namespace, root: Path) -> list[str]:
    """Return the reviews that ReviewExampleGen finds, shuffled, as lines of fastText's format.

    Args:
      arguments: the arguments of the command line.
      root: the folder for all files.
    """
    files = {"train": arguments.file}
    peer_ours.prepare(root, files, MODELS[0], arguments.set, arguments.preset)
    *written, _ = peer_ours.write_reviews(root)
    found: dict[str, str] = {}
    for file in written:
        for line in file.read_text(encoding="utf-8").rstrip("\n").split("\n"):
            found.setdefault(line.partition(" ")[2], line)
    # The order of the Examples in their files could depend on Beam.
    lines = sorted(found.values())
    random.Random(0).shuffle(lines)
    return lines


def write_fold(reviews: Sequence[str], number: int, folds: int, folder: Path) -> dict[str, Path]:
    """Write the files of a fold; return split -> file.

    Args:
      reviews: all reviews, in fastText's format.
      number: the number of the fold, from 0, whose reviews are the test split.
      folds: the number of folds.
      folder: a new folder.
    """
    train = [line for place, line in enumerate(reviews) if place % folds != number]
    parts = {
        "train": [line for place, line in enumerate(train) if place % _EVAL],
        "eval": train[::_EVAL],
        "test": reviews[number::folds],
    }
    folder.mkdir(parents=True)
    for split, lines in parts.items():
        (folder / f"{split}.txt").write_text(
            "\n".join(lines) + "\n", encoding="utf-8", newline="\n"
        )
    return {split: folder / f"{split}.txt" for split in parts}


def pool(folds: Sequence[Sequence[Result]], sizes: Sequence[int]) -> list[Result]:
    """Return a result for each peer and seed, whose figures are means over the folds.

    Args:
      folds: the results of each fold, in the same order of peers and seeds.
      sizes: the number of test reviews of each fold.
    """
    return [_mean_result(same, sizes) for same in zip(*folds, strict=True)]


def _mean_result(results: Sequence[Result], sizes: Sequence[int]) -> Result:
    means: dict[str, Any] = {
        name: _mean([getattr(each, name) for each in results], sizes) for name in _SCORES
    }
    return dataclasses.replace(
        results[0],
        seconds=statistics.fmean(each.seconds for each in results),
        examples=round(statistics.fmean(each.examples for each in results)),
        peak_rss=max(each.peak_rss for each in results),
        size=round(statistics.fmean(each.size for each in results)),
        **means,
    )


def _mean(values: Sequence[float | None], sizes: Sequence[int]) -> float | None:
    """Return the mean weighted by test reviews; None if a value is unknown."""
    known = [value for value in values if value is not None]
    return float(np.average(known, weights=sizes)) if len(known) == len(sizes) else None


def folds_table(folds: Sequence[Sequence[Result]], sizes: Sequence[int]) -> Table:
    """Return a table with the accuracy and the MAE of each peer in each fold."""
    drawn = Table(Column("peer", no_wrap=True), Column("score", no_wrap=True))
    for number, size in enumerate(sizes, 1):
        drawn.add_column(f"fold {number}, {size:,} reviews", justify="right")
    by_fold = [peer_results.by_peer(fold, size) for fold, size in zip(folds, sizes, strict=True)]
    for peer in zip(*by_fold, strict=True):
        for name, title in (("accuracy", "accuracy"), ("mean_absolute_error", "MAE")):
            found = [getattr(each, name) for each in peer]
            cells = [f"{value:.4f}" if value is not None else "" for value in found]
            drawn.add_row(peer[0].name, title, *cells)
    return drawn


if __name__ == "__main__":
    main()
