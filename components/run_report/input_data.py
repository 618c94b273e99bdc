"""The input of a run for a report: the lines of each file, their classes, and anomalies."""

from __future__ import annotations

import heapq
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tfx.dsl.io import fileio

from components.data_gate import class_counts, read_anomalies
from core.files import list_files

_FILES_SHOWN = 50
_SAMPLES = 3
_SPLITS = ("train", "eval", "test")


class FileLines(NamedTuple):
    """The lines of one input file.

    Attributes:
      name: the end of its path.
      read: all lines.
      examples: split -> Examples.
      duplicates: reviews that are also in a held-out split.
      neutral: left-out neutral reviews.
      over_cap: usable reviews beyond `data.max_examples`.
      rejected: unusable lines.
      lost_bytes: bytes of damaged compressed files, which are no lines.
    """

    name: str
    read: int
    examples: Mapping[str, int]
    duplicates: int
    neutral: int
    over_cap: int
    rejected: int
    lost_bytes: int


class Reason(NamedTuple):
    """A reason for which lines were rejected, and some of these lines."""

    name: str
    lines: int
    samples: list[str]


class Balance(NamedTuple):
    """The labels of a split, in the sample that StatisticsGen read."""

    split: str
    negative: float
    positive: float


class InputData(NamedTuple):
    """The input of a run; `more_files` is the number of files that are not listed."""

    total: FileLines
    files: list[FileLines]
    more_files: int
    reasons: list[Reason]


def read_input(rejected: str) -> InputData:
    """Read the output `rejected` of ReviewExampleGen."""
    total: Counter[str] = Counter()
    files: list[FileLines] = []
    number = 0
    for counts in _json_lines(os.path.join(rejected, "files.jsonl")):
        path = counts.pop("file")
        total.update(counts)
        number += 1
        if len(files) < _FILES_SHOWN:
            files.append(_file_lines(os.path.basename(path), counts))
    if not number:
        # An older version, which wrote only the total of all files, has written the artifact.
        with fileio.open(os.path.join(rejected, "summary.json")) as file:
            total.update(json.loads(file.read()))
    return InputData(
        _file_lines("all files", total), files, number - len(files), _reasons(rejected, total)
    )


def read_balance(statistics: str) -> list[Balance]:
    """Read the label frequencies from the output of StatisticsGen."""
    found = []
    for split in _SPLITS:
        negative, positive = class_counts(statistics, split).values()
        if whole := negative + positive:
            found.append(Balance(split, negative / whole, positive / whole))
    return found


def read_all_anomalies(anomalies: str) -> list[str]:
    """Return a line for each anomaly that ExampleValidator found in any split."""
    splits = [split for split in _SPLITS if fileio.exists(f"{anomalies}/Split-{split}")]
    return [line for split in splits for line in read_anomalies(anomalies, split)]


def _file_lines(name: str, counts: Mapping[str, int]) -> FileLines:
    counts = dict(counts)
    lost_bytes = counts.pop("lost_bytes", 0)
    duplicates = counts.get("rejected/duplicate_across_splits", 0)
    return FileLines(
        name=name,
        read=sum(counts.values()),
        examples={split: counts.get(f"examples/{split}", 0) for split in _SPLITS},
        duplicates=duplicates,
        neutral=counts.get("neutral", 0),
        over_cap=counts.get("over_max_examples", 0),
        rejected=sum(n for key, n in counts.items() if key.startswith("rejected/")) - duplicates,
        lost_bytes=lost_bytes,
    )


def _reasons(rejected: str, total: Mapping[str, int]) -> list[Reason]:
    names = [name for name in total if name.startswith("rejected/")]
    samples: dict[str, list[str]] = {name.removeprefix("rejected/"): [] for name in names}
    missing = set(samples)
    for path in list_files(rejected, "lines*"):
        for line in _json_lines(path):
            if not missing:
                break
            of_reason = samples.setdefault(line["reason"], [])
            if len(of_reason) < _SAMPLES:
                name = os.path.basename(line["file"])
                of_reason.append(f"{name}:{line['position']} {line['detail']}")
            else:
                missing.discard(line["reason"])
    most = heapq.nlargest(len(names), names, key=lambda name: total[name])
    return [
        Reason(name.removeprefix("rejected/"), total[name], samples[name.removeprefix("rejected/")])
        for name in most
    ]


def _json_lines(path: str) -> Iterator[dict[str, Any]]:
    if not fileio.exists(path):
        return
    with fileio.open(path) as file:
        for line in file:
            yield json.loads(line)
