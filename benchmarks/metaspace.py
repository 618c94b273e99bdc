"""Measure the memory that Java has for classes in a Flink cluster, after each of several jobs.

    python -m benchmarks.metaspace [--jobs N] [--json FILE]

The jobs count three words, one after the other, each in the same cluster of one TaskManager:

    class path  the cluster of `make flink-cluster`, whose class path has Beam's jars
    each job    the same cluster without them: each job brings them, as on other clusters

The figures are Flink's own metric `Status.JVM.Memory.Metaspace.Used`. After the last job, `jcmd` of
the JDK, if it is installed, has each process collect its garbage, which includes classes.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import apache_beam as beam
import psutil
from rich.table import Column, Table

from benchmarks import usage
from core.errors import UserError
from core.flink import rest
from core.local_beam import make_pipeline
from pipeline.beam import beam_args, flink_jars
from pipeline.config import PipelineConfig
from pipeline.flink_settings import Flink
from platforms.flink import check_java
from tools.flink_cluster.cluster import FlinkCluster

CLUSTERS = {"class path": True, "each job": False}
"""Name -> whether the class path has Beam's jars."""
_METRIC = "Status.JVM.Memory.Metaspace.Used"
_SECONDS_BETWEEN_METRICS = 11.0
"""Flink keeps the metrics for ten seconds."""
_SECONDS_TO_UPDATE = 2.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=6, help="jobs on each cluster [6]")
    parser.add_argument("--json", type=Path, help="output file for the figures")
    arguments = parser.parse_args()
    try:
        check_java(Flink())
    except UserError as error:
        parser.error(str(error))
    if not list(flink_jars(Flink()).glob("flink-*.jar")):
        parser.error("the jars of Flink are not separate; install Maven and run make flink again")
    figures = {name: list(measure(own, arguments.jobs)) for name, own in CLUSTERS.items()}
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))
    usage.wide_console().print(table(figures, arguments.jobs))


def measure(beam_jars: bool, jobs: int) -> Iterator[dict[str, float]]:
    """Yield process -> its bytes for classes: after each job, and after a garbage collection."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with FlinkCluster(
            flink_jars(Flink()), folder / "cluster", task_managers=1, beam_jars=beam_jars
        ) as cluster:
            flink = {"master": cluster.address, "parallelism": 1}
            settings = {
                "paths": {"root": str(folder)},
                "beam": {"runner": "flink", "flink": flink},
            }
            args = beam_args(PipelineConfig.model_validate(settings))
            for _ in range(jobs):
                _count_words(args)
                yield _metaspace(cluster.address)
            if _collect_garbage():
                yield _metaspace(cluster.address)


def _count_words(args: Sequence[str]) -> None:
    with make_pipeline(args) as pipeline:
        words = pipeline | beam.Create(["a", "b", "a"])
        _ = words | beam.Map(lambda word: (word, 1)) | beam.CombinePerKey(sum)


def _metaspace(address: str) -> dict[str, float]:
    time.sleep(_SECONDS_BETWEEN_METRICS)
    _read(address)
    time.sleep(_SECONDS_TO_UPDATE)
    return _read(address)


def _read(address: str) -> dict[str, float]:
    [manager] = rest.get(address, "/taskmanagers")["taskmanagers"]
    paths = {"JobManager": "/jobmanager", "TaskManager": f"/taskmanagers/{manager['id']}"}
    return {name: rest.metrics(address, path, _METRIC)[_METRIC] for name, path in paths.items()}


def _collect_garbage() -> bool:
    """Have the Java processes below this one collect their garbage; return whether they can."""
    if not shutil.which("jcmd"):
        return False
    for process in psutil.Process().children(recursive=True):
        if process.name() == "java":
            subprocess.run(["jcmd", str(process.pid), "GC.run"], check=True, capture_output=True)
    return True


def table(figures: dict[str, list[dict[str, float]]], jobs: int) -> Table:
    """Return the table in MiB, with a row for each job and one for the garbage collection."""
    names = [(cluster, process) for cluster in figures for process in ("JobManager", "TaskManager")]
    found = Table(
        "MiB after",
        *[Column(f"{cluster}: {process}", justify="right") for cluster, process in names],
    )
    for number in range(len(next(iter(figures.values())))):
        cells = [
            f"{figures[cluster][number][process] / usage.MEBIBYTE:.1f}"
            for cluster, process in names
        ]
        found.add_row(f"job {number + 1}" if number < jobs else "garbage collection", *cells)
    return found


if __name__ == "__main__":
    main()
