"""The input of a run for a report: the lines of each file, their classes, and anomalies."""

from __future__ import annotations

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
_REJECTED = "rejected/"
_DUPLICATE = f"{_REJECTED}duplicate_across_splits"


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
    more_files = 0
    for counts in _json_lines(os.path.join(rejected, "files.jsonl")):
        path = counts.pop("file")
        total.update(counts)
        if len(files) < _FILES_SHOWN:
            files.append(_file_lines(os.path.basename(path), Counter(counts)))
        else:
            more_files += 1
    reasons = _reasons(rejected, total)
    return InputData(_file_lines("all files", total), files, more_files, reasons)


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


def _file_lines(name: str, counts: Counter[str]) -> FileLines:
    rejected = sum(n for key, n in counts.items() if key.startswith(_REJECTED))
    return FileLines(
        name=name,
        read=sum(counts.values()) - counts["lost_bytes"],
        examples={split: counts[f"examples/{split}"] for split in _SPLITS},
        duplicates=counts[_DUPLICATE],
        neutral=counts["neutral"],
        over_cap=counts["over_max_examples"],
        rejected=rejected - counts[_DUPLICATE],
        lost_bytes=counts["lost_bytes"],
    )


def _reasons(rejected: str, total: Counter[str]) -> list[Reason]:
    reasons = {
        name.removeprefix(_REJECTED): Reason(name.removeprefix(_REJECTED), lines, [])
        for name, lines in total.most_common()
        if name.startswith(_REJECTED)
    }
    incomplete = set(reasons)
    for path in list_files(rejected, "lines*"):
        for line in _json_lines(path):
            if not incomplete:
                break
            samples = reasons[line["reason"]].samples
            if len(samples) < _SAMPLES:
                name = os.path.basename(line["file"])
                samples.append(f"{name}:{line['position']} {line['detail']}")
            else:
                incomplete.discard(line["reason"])
    return list(reasons.values())


def _json_lines(path: str) -> Iterator[dict[str, Any]]:
    if not fileio.exists(path):
        return
    with fileio.open(path) as file:
        for line in file:
            yield json.loads(line)
