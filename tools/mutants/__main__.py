"""Insert faults into the packages, one at a time, and count how many of them the tests find.

usage: python tools/mutants [--sample N] [--seed N] [--jobs N] [PACKAGE ...]

Cosmic Ray creates the mutants: a sample of N for each package, or all mutants with `--sample 0`.
For each mutant the tests that import the changed module run, the nearest ones first, until one of
them fails. The report with the diff of each survivor is .cache/mutants/report.txt.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from mutations import Mutation, draw_mutations, mutated
from tests_of import Tests
from workers import Worker

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".cache" / "mutants"
PACKAGES = ("preprocessing", "components", "trainer_module")


class Result(NamedTuple):
    mutation: Mutation
    killed: bool
    seconds: float
    change: str


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), metavar="PACKAGE")
    parser.add_argument("--sample", type=int, default=60, help="mutants per package; 0: all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()

    FOLDER.mkdir(parents=True, exist_ok=True)
    trees = [_copy(FOLDER / f"tree-{number}") for number in range(options.jobs)]
    os.chdir(trees[0])
    sys.path.append(str(trees[0]))  # grimp finds packages by sys.path.
    chosen = [
        mutation
        for package in options.packages
        for mutation in islice(draw_mutations(package, options.seed), options.sample or None)
    ]
    print(f"{len(chosen)} mutants of {', '.join(options.packages)}", flush=True)
    results: list[Result] = []
    with open(FOLDER / "report.txt", "w", encoding="utf-8") as report:
        for result in _results(trees, chosen):
            results.append(result)
            outcome = "killed" if result.killed else "SURVIVED"
            line = f"{outcome:8} {result.seconds:4.0f} s  {result.mutation}"
            print(f"{len(results):4}/{len(chosen)}  {line}", flush=True)
            print(line if result.killed else f"{line}\n{result.change}", file=report, flush=True)
    for package in options.packages:
        print(_score(package, [r for r in results if r.mutation.module.parts[0] == package]))
    print(f"survivors: {FOLDER / 'report.txt'}")


def _copy(tree: Path) -> Path:
    """Clone the repository with its uncommitted changes; mutants exist only in clones."""
    shutil.rmtree(tree, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, tree], check=True)
    names = subprocess.run(
        ["git", "ls-files", "-z", "--modified", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    for name in filter(None, names.decode().split("\0")):
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
        else:
            (tree / name).unlink(missing_ok=True)
    (tree / ".venv").symlink_to(ROOT / ".venv")
    return tree


def _results(trees: Sequence[Path], mutations: Sequence[Mutation]) -> Iterator[Result]:
    tests = Tests()
    free: SimpleQueue[Worker] = SimpleQueue()
    for tree in trees:
        free.put(Worker(tree, FOLDER / f"{tree.name}.log"))

    def result(mutation: Mutation) -> Result:
        worker = free.get()
        began = time.monotonic()
        with mutated(worker.tree, mutation) as change:
            killed = worker.fails(tests.of(mutation.module))
        free.put(worker)
        return Result(mutation, killed, time.monotonic() - began, change)

    with ThreadPoolExecutor(len(trees)) as pool:
        for done in as_completed([pool.submit(result, mutation) for mutation in mutations]):
            yield done.result()


def _score(package: str, results: Sequence[Result]) -> str:
    killed = sum(result.killed for result in results)
    return f"{package:16} {killed} of {len(results)} killed ({killed / max(1, len(results)):.0%})"


if __name__ == "__main__":
    main()
