"""Measure each component of our pipeline and of a plain TFX pipeline, on the same file.

    python -m benchmarks.pipeline FILE [--test FILE] [--set KEY=VALUE]

FILE is in Kaggle's fastText format, plain or bz2. Seconds depend on the machine and its load; quote
only the ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from benchmarks import usage
from cli.monitor import run_monitored, run_pipeline
from cli.run_state import DONE, RunState
from pipeline.config import load_config
from platforms.local.folders import prepare

_PLAIN = str(Path(__file__).with_name("plain_tfx.py"))
_NAMES = {"ReviewExampleGen": "ExampleGen", "FileBasedExampleGen": "ExampleGen"}
_BEFORE_TRAINING = ("ExampleGen", "StatisticsGen", "Transform")


def main() -> None:
    arguments = _arguments()
    console = Console(markup=False, emoji=False)
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        console.print("ours")
        seconds = {"ours": _seconds(_run_ours(console, arguments, scratch / "ours"))}
        console.print("plain TFX")
        seconds["plain TFX"] = _seconds(_run_plain(console, arguments, scratch / "plain"))
    console.print(_table(seconds))
    usage.print_machine(console, arguments.file)
    if arguments.json:
        arguments.json.write_text(json.dumps(seconds, indent=1))


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("file", type=Path, help="reviews to train on, fastText format")
    parser.add_argument("--test", type=Path, help="reviews of the test split [a tenth of FILE]")
    return parser.parse_args()


def _run_ours(console: Console, arguments: argparse.Namespace, root: Path) -> RunState:
    inputs = root / "input"
    inputs.mkdir(parents=True)
    splits = {"train": _link(arguments.file, inputs)}
    if arguments.test:
        splits["test"] = _link(arguments.test, inputs)
    settings = {
        "paths": {"root": str(root / "runs")},
        "data": {"input_base": str(inputs), "splits": splits},
    }
    config = root / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    loaded = load_config(str(config), arguments.set)
    state = run_pipeline(console, root / "log", loaded, prepare(loaded))
    outcome = usage.outcome(state, root / "log")
    console.print(f"accuracy {outcome.accuracy:.4f}, AUC {outcome.auc:.4f}")
    return state


def _run_plain(console: Console, arguments: argparse.Namespace, root: Path) -> RunState:
    inputs = root / "input"
    inputs.mkdir(parents=True)
    _link(arguments.file, inputs)
    os.environ |= {"PLAIN_INPUT": str(inputs), "PLAIN_ROOT": str(root / "runs")}
    (root / "runs").mkdir()
    state = run_monitored(console, root / "log", [sys.executable, _PLAIN])
    # Plain TFX sends no outcome.
    if not state.components or any(each.state != DONE for each in state.components):
        raise usage.fail("the run of plain TFX failed", root / "log")
    return state


def _link(file: Path, folder: Path) -> str:
    (folder / file.name).symlink_to(file.resolve())
    return file.name


def _seconds(state: RunState) -> dict[str, float]:
    return {_NAMES.get(c.name, c.name): c.seconds() for c in state.components}


def _table(seconds: dict[str, dict[str, float]]) -> Table:
    table = Table("component", *[f"{name}, s" for name in seconds], "plain / ours")
    names = list(dict.fromkeys(name for run in seconds.values() for name in run))
    rows = {name: [name] for name in names} | {
        "until training": list(_BEFORE_TRAINING),
        "all": names,
    }
    for title, parts in rows.items():
        sums = [sum(run.get(part, 0.0) for part in parts) for run in seconds.values()]
        ratio = f"{sums[1] / sums[0]:.2f}" if all(sums) else ""
        table.add_row(title, *[f"{value:.1f}" if value else "" for value in sums], ratio)
    return table


if __name__ == "__main__":
    main()
