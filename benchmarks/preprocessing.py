"""Measure the preprocessing of our pipeline, of a plain TFX pipeline, and the machine's limits.

    python -m benchmarks.preprocessing FILE [--repeat N] [--only ours|plain] [--set KEY=VALUE]

FILE is in Kaggle's fastText format, plain or bz2. One run measures all three, each in a process of
its own. Seconds depend on the machine and its load; quote only the ratios. `--repeat` multiplies
the input by N, with different texts, to show the growth of the cost. The limits of the machine are
the times to decompress the same input, to write it as Examples, and to hash it in a TensorFlow
graph, each on all cores and without a pipeline.
"""

from __future__ import annotations

import argparse
import bz2
import json
import logging
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.usage import MEBIBYTE, cores, figures_of, wide_console
from trainer_module.loop.memory import peak_rss

_COMPONENTS = {
    "ReviewExampleGen": "ExampleGen",
    "FileBasedExampleGen": "ExampleGen",
    "StatisticsGen": "StatisticsGen",
    "Transform": "Transform",
}
_LAST_COMPONENT = "Transform"
_ALL = "all three"
_MODULE = "benchmarks.preprocessing"


def main() -> None:
    arguments = _arguments()
    if arguments.child:
        print(json.dumps(_CHILDREN[arguments.child](arguments)))
        return
    console = wide_console()
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        source = _repeated(arguments.file, arguments.repeat, scratch / "input")
        log = scratch / "log"
        figures = {}
        for name in ("limits", "ours", "plain"):
            if arguments.only in (None, name) or (name == "limits" and arguments.only == "ours"):
                console.print(f"{name} …")
                figures[name] = figures_of(
                    _MODULE,
                    str(source),
                    f"--child={name}",
                    f"--scratch={scratch}",
                    *(f"--set={each}" for each in arguments.set),
                    log=log,
                    environment={"TF_CPP_MIN_LOG_LEVEL": "2"},
                )
    reviews = figures["limits"].pop("reviews") if "limits" in figures else None
    console.print(_components(figures, reviews))
    if "limits" in figures:
        console.print(_limits(figures, reviews))
    console.print(
        f"{arguments.file} x {arguments.repeat}, {reviews or '?'} reviews, {cores()} cores, load "
        f"{os.getloadavg()[0]:.1f} at the end, Python {platform.python_version()}"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", type=Path, help="reviews, fastText format")
    parser.add_argument("--repeat", type=int, default=1, help="copies of the input [1]")
    parser.add_argument("--only", choices=["ours", "plain"])
    parser.add_argument("--set", default=[], action="append", help="settings for ours")
    parser.add_argument("--scratch", help="folder for temporary files")
    parser.add_argument("--child", choices=list(_CHILDREN), help=argparse.SUPPRESS)
    return parser.parse_args()


def _repeated(file: Path, times: int, folder: Path) -> Path:
    """Link the input in a new folder, or write a bz2 file of several copies with other texts."""
    folder.mkdir()
    target = folder / file.name
    if times == 1:
        target.symlink_to(file.resolve())
        return target
    target = target.with_suffix(".bz2")
    content = file.read_bytes()
    if file.suffix == ".bz2":
        content = bz2.decompress(content)
    lines = content.splitlines(keepends=True)
    chunks = [b"".join(lines[start : start + 1000]) for start in range(0, len(lines), 1000)]

    def packed(task: tuple[int, bytes]) -> bytes:
        number, chunk = task
        ending = f" copy{number}\n".encode() if number else b"\n"
        return bz2.compress(chunk.replace(b"\n", ending))

    tasks = chain.from_iterable(((number, chunk) for chunk in chunks) for number in range(times))
    with ThreadPoolExecutor(cores()) as pool, target.open("wb") as out:
        for member in pool.map(packed, tasks):
            out.write(member)
    return target


class _Clock(logging.Handler):
    """A logging handler that measures each component by the log of TFX's local runner.

    Attributes:
      figures: component -> its seconds and its peak memory in MiB.
    """

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.figures: dict[str, dict[str, float]] = {}
        self._started = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        message = str(record.msg)
        if message == "Component %s is running.":
            Path("/proc/self/clear_refs").write_text("5")  # resets the peak
            self._started = time.monotonic()
        elif message == "Component %s is finished." and isinstance(record.args, tuple):
            name = _COMPONENTS.get(str(record.args[0]))
            if name:
                seconds = time.monotonic() - self._started
                self.figures[name] = {"s": seconds, "peak": peak_rss() / MEBIBYTE}


def _run(pipeline: Any) -> dict[str, Any]:
    from absl import logging as absl_logging
    from tfx.orchestration.local.local_dag_runner import LocalDagRunner
    from tfx.orchestration.pipeline import RunOptions

    absl_logging.set_verbosity(absl_logging.INFO)
    absl_logging.use_absl_handler()
    clock = _Clock()
    logging.getLogger("absl").addHandler(clock)
    LocalDagRunner().run(pipeline, run_options=RunOptions(to_nodes=[_LAST_COMPONENT]))
    return clock.figures


def _ours(arguments: argparse.Namespace) -> dict[str, Any]:
    import yaml

    from pipeline.config import load_config
    from pipeline.pipeline import create_pipeline
    from platforms.local.platform import Local

    root = Path(arguments.scratch) / "ours"
    root.mkdir()
    settings = {
        "paths": {"root": str(root)},
        "data": {
            "input_base": str(arguments.file.parent),
            "splits": {"train": arguments.file.name},
        },
    }
    (root / "config.yaml").write_text(yaml.safe_dump(settings))
    config = load_config(str(root / "config.yaml"), arguments.set)
    return _run(create_pipeline(config, Local(config)))


def _plain(arguments: argparse.Namespace) -> dict[str, Any]:
    from benchmarks import plain_tfx

    root = Path(arguments.scratch) / "plain"
    root.mkdir()
    return _run(plain_tfx.create_pipeline(str(arguments.file.parent), str(root)))


def _limits_of_machine(arguments: argparse.Namespace) -> dict[str, Any]:
    from benchmarks import machine_limits

    return machine_limits.measure(str(arguments.file), Path(arguments.scratch))


def _components(figures: dict[str, Any], reviews: int | None) -> Table:
    names = [name for name in ("ours", "plain") if name in figures]
    columns = [f"{name}, {what}" for name in names for what in ("s", "reviews/s", "peak MiB")]
    table = Table("component", *columns, "plain / ours")
    for run in names:
        figures[run][_ALL] = {
            "s": sum(figure["s"] for figure in figures[run].values()),
            "peak": max(figure["peak"] for figure in figures[run].values()),
        }
    for component in figures[names[0]]:
        cells = []
        for name in names:
            figure = figures[name][component]
            rate = f"{reviews / figure['s']:,.0f}" if reviews else ""
            cells += [f"{figure['s']:.1f}", rate, f"{figure['peak']:.0f}"]
        seconds = [figures[name][component]["s"] for name in names]
        table.add_row(component, *cells, f"{seconds[1] / seconds[0]:.2f}" if seconds[1:] else "")
    return table


def _limits(figures: dict[str, Any], reviews: int) -> Table:
    limits = figures["limits"]
    ours = figures.get("ours", {})
    rows = {
        "decompress": (limits["decompress"], None),
        "encode and write Examples": (limits["write"], None),
        "both": (limits["decompress"] + limits["write"], "ExampleGen"),
        "words and 2-grams in a graph": (limits["hash"], "Transform"),
    }
    table = Table(f"alone, on {cores()} cores", "s", "reviews/s", "ours / this")
    for name, (seconds, component) in rows.items():
        ratio = f"{ours[component]['s'] / seconds:.2f}" if component and ours else ""
        table.add_row(name, f"{seconds:.1f}", f"{reviews / seconds:,.0f}", ratio)
    return table


_CHILDREN: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "limits": _limits_of_machine,
    "ours": _ours,
    "plain": _plain,
}

if __name__ == "__main__":
    sys.exit(main())
