"""Run the preset `amazon` from raw archives to a pushed model, beside the limits of the machine.

    python -m benchmarks.whole FOLDER
    python -m benchmarks.whole --from FOLDER [--train N] [--test N]

The first command reads Kaggle's train.ft.txt.bz2 and test.ft.txt.bz2 in FOLDER. The second command
does not require Kaggle's files. It creates archives of N [3600000 and 400000] different reviews
from the labelled reviews in train.ft.txt and test.ft.txt in FOLDER, plain or .bz2 (see
`benchmarks.whole_files`).

The run is `amazon-reviews run` in one process, with its own paths.root in a temporary folder. Peak
memory is the memory of all its processes together, in which a page that several of them share
counts once. Peak disk is the size of all files that it writes, without the archives. Then the same
archives are decompressed, written as Examples, read again and hashed, each step alone on all cores,
and fastText trains on them. Seconds depend on the machine and its load; quote only the ratios. On a
busy machine only ratios of CPU seconds are reliable.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Column, Table

from benchmarks import usage, whole_files
from core.overrides import OPTION

_PRESET = "amazon"
_SHORTEST = 0.5
"""Minimum seconds of a component that reads the reviews."""
_LIMITS = {"ReviewExampleGen": ("decompress", "write"), "Transform": ("read", "hash")}
"""Component -> the steps of `machine_limits` that it always requires."""


def main() -> None:
    arguments = _arguments()
    console = usage.wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        log = scratch / "log"
        inputs = scratch / "input"
        inputs.mkdir()
        console.print("archives …")
        provide(arguments, inputs, log)
        archives = [inputs / name for name in whole_files.NAMES]
        console.print("the pipeline …")
        figures = run(inputs, scratch / "run", arguments.set, log)
        console.print("the limits of the machine …")
        figures["limits"] = _limits(archives, scratch, log)
        console.print("fastText …")
        words = [str(archive) for archive in archives]
        figures["fasttext"] = usage.run_measurement("benchmarks.peer_fasttext", *words, log=log)
    for drawn in (components_table(figures), ratios_table(figures)):
        console.print(drawn)
    console.print(
        f"peak memory {figures['memory'] / usage.MEBIBYTE:,.0f} MiB "
        f"({figures['resident'] / usage.MEBIBYTE:,.0f} MiB with shared pages in each process), "
        f"peak disk {figures['disk'] / usage.MEBIBYTE:,.0f} MiB; "
        f"accuracy {figures['accuracy']:.4f}, fastText {figures['fasttext']['accuracy']:.4f}"
    )
    usage.print_machine(console, arguments.folder or arguments.source)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def _arguments() -> argparse.Namespace:
    parser = usage.parser(__doc__)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("folder", type=Path, nargs="?", help="folder with Kaggle's files")
    given.add_argument("--from", type=Path, dest="source", help="folder with other reviews")
    parser.add_argument("--train", type=int, default=3_600_000, help="train reviews of --from")
    parser.add_argument("--test", type=int, default=400_000, help="test reviews of --from")
    arguments = parser.parse_args()
    whole_files.check_source(parser, arguments.source or arguments.folder)
    return arguments


def provide(arguments: argparse.Namespace, inputs: Path, log: Path) -> None:
    """Create the archives, or links to them, in the folder `inputs`.

    Args:
      arguments: the command line.
      inputs: an existing folder.
      log: the log of the process that creates the archives.

    Raises:
      SystemExit: the archives cannot be created.
    """
    if arguments.source:
        words = [arguments.source.resolve(), inputs, arguments.train, arguments.test]
        # In a separate process, because the sentences take memory.
        usage.run_module("benchmarks.whole_files", *map(str, words), log=log)
        return
    for name in whole_files.NAMES:
        (inputs / name).symlink_to((arguments.folder / name).resolve())


def run(
    inputs: Path, root: Path, overrides: Sequence[str], log: Path, preset: str = _PRESET
) -> dict[str, Any]:
    """Run the pipeline; return its seconds, its peaks and the accuracy of its model.

    Args:
      inputs: the folder of the archives.
      root: a new folder for all files of the run.
      overrides: settings, KEY=VALUE.
      log: the log of the run.
      preset: the preset of the run.

    Raises:
      SystemExit: no model was pushed.
    """
    from cli.monitor import ARENAS
    from components.run_report.history import recorded_decision
    from pipeline.config import load_config
    from platforms.local import runs

    # Beam's temporary files are on the disk too.
    temporary = root / "tmp"
    temporary.mkdir(parents=True)
    settings = [f"paths.root={root}", f"data.input_base={inputs}", *overrides]
    words = ["--config", preset, *(word for each in settings for word in (OPTION, each))]
    with usage.ProcessTree(folder=root) as tree:
        start = time.time()
        # The heap as `amazon-reviews run` sets it.
        environment = {"TMPDIR": str(temporary), ARENAS: str(usage.cores())}
        usage.run_module("platforms.local.main", *words, log=log, environment=environment)
        end = time.time()
    found = runs.find_run(load_config(preset, settings), None)
    if found.outcome is None or not found.outcome.pushed_to:
        result = recorded_decision(found).result
        raise SystemExit(f"no model was pushed: the result of the run is {result}")
    assert found.started is not None
    components = {}
    for step in found.steps:
        begin = found.started + step.started
        cpu = tree.cpu_seconds(begin, begin + step.seconds)
        components[step.name] = {"start": begin, "s": step.seconds, "cpu": cpu}
    return {
        "seconds": end - start,
        "cpu": tree.cpu_seconds(start, end),
        "components": components,
        "memory": usage.most_together(tree.samples()),
        "resident": max(sum(sample.resident.values()) for sample in tree.samples()),
        "disk": max(sample.disk for sample in tree.samples()),
        "accuracy": found.outcome.accuracy,
    }


def _limits(archives: Sequence[Path], scratch: Path, log: Path) -> dict[str, float]:
    """Return the seconds of each step alone, and the number of reviews, over all archives."""
    total: Counter[str] = Counter()
    for archive in archives:
        words = [str(archive), str(scratch)]
        total.update(usage.run_measurement("benchmarks.machine_limits", *words, log=log))
    return dict(total)


def components_table(figures: Mapping[str, Any]) -> Table:
    """Return a table of the components, with their parts of the run."""
    reviews, whole = figures["limits"]["reviews"], figures["seconds"]
    table = Table("component", *_right("s", "of the run", "reviews/s", "CPU s"))
    rows = {name: (found["s"], found["cpu"]) for name, found in figures["components"].items()}
    # The history of the runs does not contain RunReport, because RunReport itself reads it.
    rows["imports, RunReport, between components"] = (
        whole - sum(seconds for seconds, _ in rows.values()),
        figures["cpu"] - sum(cpu for _, cpu in rows.values()),
    )
    rows["the run"] = (whole, figures["cpu"])
    for name, (seconds, cpu) in rows.items():
        rate = f"{reviews / seconds:,.0f}" if seconds > _SHORTEST else ""
        table.add_row(name, f"{seconds:.1f}", f"{seconds / whole:.0%}", rate, f"{cpu:.1f}")
    table.caption = f"{reviews:,} reviews"
    return table


def ratios_table(figures: Mapping[str, Any]) -> Table:
    """Return a table that compares ours with single steps and with fastText."""
    limits, fasttext = figures["limits"], figures["fasttext"]
    ours = {**figures["components"], "the run": {"s": figures["seconds"], "cpu": figures["cpu"]}}
    trained = np.array([fasttext["seconds"], fasttext["cpu"]])
    rows: list[tuple[str, str, np.ndarray]] = []
    every = trained
    for component, steps in _LIMITS.items():
        parts = [np.array([limits[step], limits[f"{step}_cpu"]]) for step in steps]
        rows += [(step, "", part) for step, part in zip(steps, parts, strict=True)]
        together = np.sum(parts, axis=0)
        rows.append((" + ".join(steps), component, together))
        every = every + together
    rows += [
        ("fastText's training", "Trainer", trained),
        ("fastText's training", "the run", trained),
        ("all of these", "the run", every),
    ]
    columns = _right("s", "CPU s"), _right("s", "CPU s", "s, ratio", "CPU s, ratio")
    table = Table("alone, on all cores", *columns[0], "ours", *columns[1])
    for title, name, alone in rows:
        cells = [title, *(f"{value:.1f}" for value in alone), name]
        if name:
            found = np.array([ours[name]["s"], ours[name]["cpu"]])
            cells += [f"{value:.1f}" for value in found]
            cells += [f"{ratio:.2f}" for ratio in found / alone]
        table.add_row(*cells)
    table.caption = "ratio: ours / alone"
    return table


def _right(*titles: str) -> list[Column]:
    return [Column(title, justify="right") for title in titles]


if __name__ == "__main__":
    main()
