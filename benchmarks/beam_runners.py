"""Measure the Beam components on the direct runner and on Apache Flink, on the same files.

    python -m benchmarks.beam_runners PATH [PATH ...] [--only direct local] [--set KEY=VALUE]
    python -m benchmarks.beam_runners --reviews N [--files N] [--warm]

A PATH is a file of reviews or a folder of such files. With --reviews the synthetic reviews of
`sample_data.generate` are divided over several files. Each setup runs the whole pipeline with one
epoch of training in a folder of its own:

    direct  Beam in the process of the component
    local   Flink inside the job server, Python workers in the process of the component
    one     a Flink cluster with one TaskManager of one slot, Python workers of their own
    two     the same with two TaskManagers

With --warm each cluster first runs the pipeline on 2,000 reviews, which is not measured. The Java
processes of a cluster load and compile their classes in its first jobs.

The memory of a kind of process is the maximum, while a Beam component runs, of the sum of the
resident memory of its processes. In *all together* a page that several processes share counts once;
if other programs share it, only a part counts. Seconds depend on the machine and its load; quote
only the ratio.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Column, Table

from benchmarks import usage
from cli.monitor import run_pipeline
from cli.run_state import RunState
from components.line_counts import LineCounts
from core.errors import UserError
from pipeline.cluster_settings import Flink
from pipeline.config import load_config
from platforms.beam import flink_jars
from platforms.flink.checks import check_java
from platforms.local.folders import prepare
from sample_data.generate import reviews
from tools.flink_cluster import FlinkCluster

BEAM_COMPONENTS = ("ReviewExampleGen", "Transform", "Evaluator")
_ALL, _TOGETHER = "all three", "all together"
_GUARD = "guards"
_WARM_UP = 2000
"""The reviews of --warm."""
_KINDS = {
    # The command line of a guard contains that of its child.
    "platforms.flink.guard": _GUARD,
    "FlinkJobServerDriver": "job server",
    "StandaloneSessionClusterEntrypoint": "JobManager",
    "TaskManagerRunner": "TaskManagers",
    # A fork server, and the workers that it forks, which keep its command line.
    "multiprocessing.forkserver": "Python workers",
    "platforms.flink.worker_pool": "Python workers",
    "platforms.local.main": "pipeline",
}


SETUPS = {"direct": None, "local": 0, "one": 1, "two": 2}
"""Name -> the TaskManagers of the Flink cluster; 0: no cluster, None: no Flink."""


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        inputs = scratch / "input"
        inputs.mkdir()
        if arguments.reviews:
            generate(inputs, arguments.reviews, arguments.files)
        if arguments.warm:
            generate(scratch / "warm-up", _WARM_UP, arguments.files)
        for number, file in enumerate(_files(arguments.paths)):
            (inputs / f"{number:05d}-{file.name}").symlink_to(file.resolve())
        for name in arguments.only:
            console.print(name)
            root = scratch / name
            root.mkdir()
            warm_up = scratch / "warm-up" if arguments.warm else None
            figures[name] = measure(console, SETUPS[name], inputs, warm_up, root, arguments.set)
            shutil.rmtree(root)
            if arguments.json:
                arguments.json.write_text(json.dumps(figures, indent=1))
    for table in tables(figures):
        console.print(table)
    count = next(iter(figures.values()))["reviews"]
    usage.print_machine(console, f"{count:,} reviews")


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="files or folders of reviews")
    parser.add_argument("--reviews", type=int, help="number of synthetic reviews to generate")
    parser.add_argument("--files", type=int, default=8, help="files of --reviews [8]")
    parser.add_argument("--warm", action="store_true", help="run a small job on each cluster first")
    parser.add_argument("--only", nargs="+", choices=SETUPS, default=list(SETUPS))
    arguments = parser.parse_args()
    if bool(arguments.paths) == bool(arguments.reviews):
        parser.error("give either PATH or --reviews")
    if arguments.only != ["direct"]:
        try:
            check_java(Flink())
        except UserError as error:
            parser.error(str(error))
    return arguments


def generate(folder: Path, count: int, files: int) -> None:
    """Write synthetic reviews to files, nearly the same number to each.

    Args:
      folder: the folder, which is created if it is missing.
      count: number of reviews.
      files: number of files.
    """
    folder.mkdir(exist_ok=True)
    source = reviews()
    for number in range(files):
        size = count * (number + 1) // files - count * number // files
        with (folder / f"part-{number:05d}.ft.txt").open("w") as file:
            file.writelines(f"{review.line()}\n" for review in itertools.islice(source, size))


def _files(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        found += (
            sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
        )
    return found


def measure(
    console: Console,
    task_managers: int | None,
    inputs: Path,
    warm_up: Path | None,
    root: Path,
    overrides: list[str],
) -> dict[str, Any]:
    """Run the pipeline, and return seconds, CPU seconds and memory of its Beam components.

    Args:
      console: the output for progress.
      task_managers: a value of SETUPS.
      inputs: the folder of the reviews.
      warm_up: the folder of the reviews of an earlier run on the same cluster; None: there is none.
      root: a new folder for all files of the run.
      overrides: settings, KEY=VALUE.

    Raises:
      SystemExit: the run failed.
    """
    with contextlib.ExitStack() as stack:
        beam: dict[str, Any] = {"runner": "direct" if task_managers is None else "flink"}
        if task_managers:
            cluster = stack.enter_context(
                FlinkCluster(flink_jars(Flink()), root / "cluster", task_managers)
            )
            beam["flink"] = {
                "master": cluster.address,
                "worker_pool": cluster.worker_pool,
                "parallelism": task_managers,
            }
            if warm_up:
                _run(console, warm_up, root / "warm-up", beam, overrides)
        tree = stack.enter_context(usage.ProcessTree(_KINDS, clock=time.monotonic))
        state, accuracy = _run(console, inputs, root / "runs", beam, overrides)
        components = {c.name: c for c in state.components if c.name in BEAM_COMPONENTS}
        spans = {name: (c.started, c.started + c.seconds()) for name, c in components.items()}
        samples = tree.samples(*spans.values())
        kinds = {kind for sample in samples for kind in sample.resident}
        memory = {kind: max(each.resident.get(kind, 0) for each in samples) for kind in kinds}
        return {
            "reviews": _reviews(root / "runs"),
            "accuracy": accuracy,
            "seconds": {name: end - start for name, (start, end) in spans.items()},
            "cpu": {name: tree.cpu_seconds(*span) for name, span in spans.items()},
            "memory": {**memory, _TOGETHER: usage.most_together(samples)},
        }


def _run(
    console: Console, inputs: Path, root: Path, beam: dict[str, Any], overrides: list[str]
) -> tuple[RunState, float]:
    """Run the pipeline; return its last state and the accuracy of its model.

    Args:
      console: the output for progress.
      inputs: the folder of the reviews.
      root: a new folder, `paths.root` of the run.
      beam: the settings of the section `beam`.
      overrides: settings, KEY=VALUE.

    Raises:
      SystemExit: the run failed.
    """
    root.mkdir()
    settings = {
        "paths": {"root": str(root)},
        "data": {"input_base": str(inputs)},
        "training": {"epochs": 1},
        "evaluation": {"min_accuracy": 0.5},
        "beam": beam,
    }
    config = root / "config.yaml"
    config.write_text(yaml.safe_dump(settings))
    log = root / "log"
    loaded = load_config(str(config), overrides)
    state = run_pipeline(console, log, loaded, prepare(loaded))
    return state, usage.outcome(state, log).accuracy


def _reviews(root: Path) -> int:
    """Return the number of Examples that the only run of a pipeline read."""
    [summary] = root.glob("ReviewExampleGen/rejected/*/summary.json")
    return LineCounts.from_file(json.loads(summary.read_text())).examples.total()


def tables(figures: dict[str, Any]) -> list[Table]:
    """Return the tables of seconds, CPU seconds and memory, with the ratios to `direct`."""
    kinds = [kind for kind in _KINDS.values() if kind != _GUARD]
    return [
        _table("seconds", figures, "seconds", BEAM_COMPONENTS, 1.0),
        _table("CPU seconds", figures, "cpu", BEAM_COMPONENTS, 1.0),
        _table("peak memory, MiB", figures, "memory", (*kinds, _TOGETHER), usage.MEBIBYTE),
    ]


def _table(
    title: str, figures: dict[str, Any], key: str, names: Sequence[str], unit: float
) -> Table:
    others = [name for name in figures if name != "direct"] if "direct" in figures else []
    headings = [*figures, *(f"{name} / direct" for name in others)]
    table = Table(title, *[Column(heading, justify="right") for heading in headings])
    rows: dict[str, tuple[str, ...]] = {name: (name,) for name in names}
    if key != "memory":
        rows[_ALL] = tuple(names)
    for title_of_row, parts in rows.items():
        values = {
            setup: sum(found[key].get(part, 0.0) for part in parts) / unit
            for setup, found in figures.items()
        }
        ratios = [
            f"{values[other] / values['direct']:.2f}" if values["direct"] else ""
            for other in others
        ]
        digits = 0 if key == "memory" else 1
        cells = [f"{value:,.{digits}f}" if value else "" for value in values.values()]
        table.add_row(title_of_row, *cells, *ratios)
    if key == "seconds":
        rates = [found["reviews"] / sum(found[key].values()) for found in figures.values()]
        table.add_row("reviews/s", *[f"{rate:,.0f}" for rate in rates], *[""] * len(others))
    return table


if __name__ == "__main__":
    main()
