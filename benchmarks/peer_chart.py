"""Draw the accuracy of the peers over the seconds of their training, from the figures of peers.py.

    python -m benchmarks.peer_chart FIGURES.json … FILE.svg

A peer that several files contain is drawn from the first of them. The wide bars are the intervals
over seeds, the thin bars those of the test set; `benchmarks.peer_results` describes both.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import peer_results, svg

_SIZE = (8.0, 4.5)
_MEGABYTE = 1_000_000
_MARKERS = "osD^vPX*<>"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("figures", type=Path, nargs="+", help="files of peers.py --json")
    parser.add_argument("file", type=Path, help="output file, an SVG")
    arguments = parser.parse_args()
    found: dict[str, peer_results.Peer] = {}
    for file in arguments.figures:
        for peer in peer_results.read(file):
            found.setdefault(peer.name, peer)
    complete = [peer for peer in found.values() if peer.accuracy is not None]
    for name in found.keys() - {peer.name for peer in complete}:
        print(f"left out, because its training was not complete: {name}")
    draw(complete, arguments.file)


def draw(peers: Sequence[peer_results.Peer], file: Path) -> None:
    """Draw peers whose accuracy is known."""

    def points(axes: Any) -> None:
        ordered = sorted(peers, key=lambda peer: peer.seconds_per_million)
        for number, peer in enumerate(ordered):
            assert peer.accuracy is not None and peer.test_interval is not None
            place, colour = (peer.seconds_per_million, peer.accuracy), f"C{number}"
            low, high = peer.test_interval
            axes.vlines(place[0], low, high, color=colour, linewidth=0.8, alpha=0.5)
            axes.errorbar(
                *place,
                yerr=peer.seed_margin or 0,
                fmt=_MARKERS[number % len(_MARKERS)],
                color=colour,
                elinewidth=3,
                label=f"{peer.name}: {peer.accuracy:.4f}, {peer.size / _MEGABYTE:,.1f} MB",
            )
        axes.set_xscale("log")
        axes.margins(x=0.1)
        axes.grid(alpha=0.3)
        axes.set_xlabel("seconds of training for 1M reviews")
        axes.set_ylabel("accuracy")
        axes.legend(
            title="peer: accuracy, size of the model", loc="upper left", bbox_to_anchor=(1, 1)
        )

    svg.save(points, _SIZE, file)


if __name__ == "__main__":
    main()
