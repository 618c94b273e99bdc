"""The results of the peers: intervals of their accuracies, a table, and a chart.

    python -m benchmarks.peer_results FIGURES.json … FILE.svg

draws the accuracy of the peers over the seconds of their training, from the figures of peers.py. If
several files contain a peer, its figures in the first file are drawn. The wide bars are the
intervals over seeds, and the thin bars the intervals of the test set.

An accuracy has two independent sources of chance, and each has an interval of 95 % of its own:

  over seeds   mean ± margin of the accuracies of several trainings, with Student's t distribution.
               It covers the chance in a training: initialisation, order, threads.
  test set     Wilson's interval of a proportion, at the mean accuracy and the number of test
               reviews. It covers the choice of the test reviews, and does not shrink with seeds.

The peers predict the same test reviews, so a difference between two of them is more certain than
their intervals of the test set suggest. The interval over seeds indicates whether a difference
depends on the training.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Column, Table
from scipy import stats

from benchmarks import usage
from trainer_module.settings import MODELS

_CONFIDENCE = 0.95
_MILLION = 1_000_000
_MEGABYTE = 1_000_000
_SIZE = (8.0, 4.5)
_STYLE: Any = {
    # With text instead of paths the file has a tenth of the size and is searchable.
    "svg.fonttype": "none",
    # The same figures give the same bytes.
    "svg.hashsalt": "benchmarks",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
_MARKERS = "osD^vPX*<>"


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of one training.

    The memory and the size of the model are in bytes. The scores are None if the training was not
    complete, and the mean absolute error if the classes have no order. The number of epochs is None
    if the solver determines it.
    """

    peer: str
    seed: int
    seconds: float
    examples: int
    accuracy: float | None
    peak_rss: int
    size: int
    epochs: int | None = None
    extrapolated: bool = False
    macro_f1: float | None = None
    mean_absolute_error: float | None = None


MEASURED = {field.name for field in dataclasses.fields(Result)} - {"peer", "seed"}
"""The attributes that a training measures itself."""


class Peer:
    """All trainings of one peer: medians of seconds and sizes, the mean accuracy and its intervals.

    `seed_margin` is half the width of the interval over seeds; None for fewer than two trainings.

    Args:
      results: the results of the trainings of the peer, at least one.
      test_reviews: number of reviews in the test file.
    """

    def __init__(self, results: Sequence[Result], test_reviews: int):
        first = results[0]
        self.name, self.extrapolated = first.peer, first.extrapolated
        self.test_reviews = test_reviews
        self.seconds = statistics.median(result.seconds for result in results)
        self.seconds_per_million = per_million = self.seconds / first.examples * _MILLION
        self.epoch_seconds_per_million = per_million / first.epochs if first.epochs else None
        self.peak_rss = max(result.peak_rss for result in results)
        self.size = statistics.median(result.size for result in results)
        accuracies = [result.accuracy for result in results if result.accuracy is not None]
        self.accuracy = _mean(accuracies)
        self.macro_f1 = _mean([result.macro_f1 for result in results])
        self.mean_absolute_error = _mean([result.mean_absolute_error for result in results])
        self.seed_margin: float | None = None
        self.test_interval: tuple[float, float] | None = None
        if len(accuracies) > 1:
            quantile = stats.t.ppf((1 + _CONFIDENCE) / 2, len(accuracies) - 1)
            deviation = statistics.stdev(accuracies)
            self.seed_margin = float(quantile * deviation / math.sqrt(len(accuracies)))
        if self.accuracy is not None:
            right = stats.binomtest(round(self.accuracy * test_reviews), test_reviews)
            low, high = right.proportion_ci(_CONFIDENCE, method="wilson")
            self.test_interval = float(low), float(high)


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values; None if there is none."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def by_peer(results: Sequence[Result], test_reviews: int) -> list[Peer]:
    """Group results by their peer, in the order of the first result of each."""
    names = dict.fromkeys(result.peer for result in results)
    return [Peer([r for r in results if r.peer == name], test_reviews) for name in names]


def write(results: Sequence[Result], test_reviews: int, file: Path) -> None:
    """Write all results to a JSON file."""
    found = [dataclasses.asdict(result) for result in results]
    file.write_text(json.dumps({"test_reviews": test_reviews, "results": found}, indent=1))


def read(file: Path) -> list[Peer]:
    """Read a file that `write` wrote."""
    found = json.loads(file.read_text())
    return by_peer([Result(**each) for each in found["results"]], found["test_reviews"])


def table(peers: Sequence[Peer]) -> Table:
    """Return a table of the peers; the ratio to ours is that of whole trainings, per review."""
    titles = (
        "train, s",
        "s per 1M reviews",
        "one epoch, s per 1M",
        "accuracy",
        "over seeds",
        "test set",
        "macro-F1",
        "MAE",
        "model, MB",
        "peak RSS, MiB",
        "s per 1M / ours",
    )
    drawn = Table(
        Column("peer", no_wrap=True), *[Column(title, justify="right") for title in titles]
    )
    ours = next((peer.seconds_per_million for peer in peers if peer.name == MODELS[0]), None)
    for peer in peers:
        epoch, interval = peer.epoch_seconds_per_million, peer.test_interval
        drawn.add_row(
            peer.name,
            f"{'~' if peer.extrapolated else ''}{peer.seconds:.1f}",
            f"{peer.seconds_per_million:.0f}",
            f"{epoch:.0f}" if epoch else "",
            f"{peer.accuracy:.4f}" if peer.accuracy is not None else "",
            f"± {peer.seed_margin:.4f}" if peer.seed_margin is not None else "",
            f"{interval[0]:.4f}-{interval[1]:.4f}" if interval else "",
            f"{peer.macro_f1:.4f}" if peer.macro_f1 is not None else "",
            f"{peer.mean_absolute_error:.4f}" if peer.mean_absolute_error is not None else "",
            f"{peer.size / _MEGABYTE:.1f}",
            f"{peer.peak_rss / usage.MEBIBYTE:.0f}",
            f"{peer.seconds_per_million / ours:.2f}" if ours else "",
        )
    drawn.caption = (
        f"medians of seconds and MB, mean accuracy; {_CONFIDENCE:.0%} intervals of the mean over "
        f"seeds and of a sample of {peers[0].test_reviews:,} test reviews"
    )
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("figures", type=Path, nargs="+", help="files of peers.py --json")
    parser.add_argument("file", type=Path, help="output file, an SVG")
    arguments = parser.parse_args()
    found: dict[str, Peer] = {}
    for file in arguments.figures:
        for peer in read(file):
            found.setdefault(peer.name, peer)
    complete = [peer for peer in found.values() if peer.accuracy is not None]
    for name in found.keys() - {peer.name for peer in complete}:
        print(f"left out, because its training was not complete: {name}")
    draw(complete, arguments.file)


def draw(peers: Sequence[Peer], file: Path) -> None:
    """Draw peers whose accuracy is known into an SVG file."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        # Not pyplot, which keeps global state.
        figure = Figure(figsize=_SIZE, layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots()
        ordered = sorted(peers, key=lambda peer: peer.seconds_per_million)
        for number, peer in enumerate(ordered):
            assert peer.accuracy is not None and peer.test_interval is not None
            point, colour = (peer.seconds_per_million, peer.accuracy), f"C{number}"
            axes.vlines(point[0], *peer.test_interval, color=colour, linewidth=0.8, alpha=0.5)
            axes.errorbar(
                *point,
                yerr=peer.seed_margin or 0,
                fmt=_MARKERS[number % len(_MARKERS)],
                color=colour,
                elinewidth=3,
                label=f"{peer.name}: {peer.accuracy:.4f}, {peer.size / _MEGABYTE:,.1f} MB",
            )
        axes.set(xscale="log", xlabel="seconds of training for 1M reviews", ylabel="accuracy")
        axes.margins(x=0.1)
        axes.grid(alpha=0.3)
        title = "peer: accuracy, size of the model"
        axes.legend(title=title, loc="upper left", bbox_to_anchor=(1, 1))
        figure.savefig(file, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
