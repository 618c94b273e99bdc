"""Measure each component on a window of spans that moves by one, and on one from nothing.

    python -m benchmarks.spans FILE [--spans 30] [--reviews 5000] [--set KEY=VALUE]

FILE is in Kaggle's fastText format, plain or bz2; its first reviews become the spans. Seconds
depend on the machine and its load; quote only the ratio.
"""

from __future__ import annotations

import argparse
import bz2
import json
import os
import tempfile
from itertools import islice
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import usage
from cli.monitor import run_pipeline
from cli.run_state import RunState
from pipeline.config import load_config
from platforms.local.folders import prepare

_BEFORE_TRAINING = (
    *("ReviewExampleGen", "SchemaGen", "StatisticsGen", "ExampleValidator", "DataGate"),
    "Transform",
)


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        _write_spans(arguments, scratch)
        _run(console, arguments, scratch, "used", arguments.spans)
        seconds = {
            name: _run(console, arguments, scratch, name, arguments.spans + 1)
            for name in ("used", "new")
        }
    console.print(_table(seconds["used"], seconds["new"]))
    usage.print_machine(console, f"{arguments.spans} spans of {arguments.reviews:,} reviews")
    if arguments.json:
        arguments.json.write_text(json.dumps(seconds, indent=1))


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("file", type=Path, help="reviews, fastText format")
    parser.add_argument("--spans", type=int, default=30, help="spans of the window [30]")
    parser.add_argument("--reviews", type=int, default=5000, help="reviews of a span [5000]")
    return parser.parse_args()


def _write_spans(arguments: argparse.Namespace, scratch: Path) -> None:
    """Write a file for each span of the window, and for the one after it.

    Raises:
      SystemExit: the file has too few lines.
    """
    opened = bz2.open if arguments.file.suffix == ".bz2" else open
    with opened(arguments.file, "rb") as lines:
        for span in range(1, arguments.spans + 2):
            own = list(islice(lines, arguments.reviews))
            if len(own) < arguments.reviews:
                raise SystemExit(f"{arguments.file} has too few lines; decrease --reviews")
            (scratch / f"span-{span}.txt").write_bytes(b"".join(own))


def _run(
    console: Console, arguments: argparse.Namespace, scratch: Path, root: str, newest: int
) -> dict[str, float]:
    """Run the pipeline on the window that ends at a span; return component -> its seconds.

    Raises:
      SystemExit: the run failed.
    """
    console.print(f"spans up to {newest}, {root} folder")
    settings = [
        f"paths.root={scratch / root}",
        f"data.input_base={scratch}/span-{{SPAN}}.txt",
        f"data.window={arguments.spans}",
        f"data.span={newest}",
        "data.splits={}",
        "evaluation.min_accuracy=0.5",
        "training.epochs=1",
        *arguments.set,
    ]
    config = load_config("amazon", settings)
    log = scratch / "log"
    lock = prepare(config)
    state: RunState = run_pipeline(console, log, config, lock)
    if lock is not None:
        os.close(lock)
    usage.outcome(state, log)
    return {component.name: component.seconds() for component in state.components}


def _table(moved: dict[str, float], nothing: dict[str, float]) -> Table:
    table = Table("component", "moved by one, s", "from nothing, s", "moved / nothing")
    rows = {name: [name] for name in _BEFORE_TRAINING} | {"until training": list(_BEFORE_TRAINING)}
    for title, names in rows.items():
        sums = [sum(run.get(name, 0.0) for name in names) for run in (moved, nothing)]
        ratio = f"{sums[0] / sums[1]:.2f}" if sums[1] else ""
        table.add_row(title, *[f"{value:.1f}" for value in sums], ratio)
    return table


if __name__ == "__main__":
    main()
