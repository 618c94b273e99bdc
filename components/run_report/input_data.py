"""The input of a run for a report: the lines of each file, their classes, and anomalies."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tfx.dsl.io import fileio

from components.data_gate import class_counts, read_anomalies
from core.errors import InputError
from core.files import list_files

OVER_CAP = "over data.max_examples"
_FILES_SHOWN = 50
_SAMPLES = 3
_SPLITS = ("train", "eval", "test")
_REJECTED = "rejected/"
_DUPLICATE = f"{_REJECTED}duplicate_across_splits"


class Reason(NamedTuple):
    """A reason for which lines were rejected, and some of these lines."""

    name: str
    lines: int
    samples: list[str]


class InputData(NamedTuple):
    """The input of a run.

    Attributes:
      total: heading of a column -> lines of all files; the lines read are the sum of the others.
      files: the name of a file and its columns.
      more_files: number of files that are not listed.
      lost_bytes: bytes of the files that cannot be read, see `preprocessing.reading.records.Batch`.
      reasons: why lines were rejected.
    """

    total: Mapping[str, int]
    files: list[tuple[str, Mapping[str, int]]]
    more_files: int
    lost_bytes: int
    reasons: list[Reason]


def read_input(rejected: str) -> InputData:
    """Read the output `rejected` of ReviewExampleGen.

    Raises:
      InputError: the output was deleted.
    """
    total: Counter[str] = Counter()
    files: list[tuple[str, Mapping[str, int]]] = []
    more_files = 0
    for counts in _json_lines(os.path.join(rejected, "files.jsonl")):
        path = counts.pop("file")
        total.update(counts)
        if len(files) < _FILES_SHOWN:
            files.append((os.path.basename(path), _columns(Counter(counts))))
        else:
            more_files += 1
    reasons = _reasons(rejected, total)
    return InputData(_columns(total), files, more_files, total["lost_bytes"], reasons)


def read_balance(statistics: str) -> dict[str, dict[str, float]]:
    """Return split -> class -> its fraction, in the sample that StatisticsGen read.

    Raises:
      InputError: the statistics were deleted.
    """
    found = {split: class_counts(statistics, split) for split in _existing_splits(statistics)}
    return {
        split: {label: count / whole for label, count in counts.items()}
        for split, counts in found.items()
        if (whole := sum(counts.values()))
    }


def read_all_anomalies(anomalies: str) -> list[str]:
    """Return a line for each anomaly that ExampleValidator found in any split.

    Raises:
      InputError: the anomalies were deleted.
    """
    splits = _existing_splits(anomalies)
    return [line for split in splits for line in read_anomalies(anomalies, split)]


def _existing_splits(folder: str) -> list[str]:
    splits = [split for split in _SPLITS if fileio.exists(f"{folder}/Split-{split}")]
    if not splits:
        raise InputError(f"{folder} has no split")
    return splits


def _columns(counts: Counter[str]) -> dict[str, int]:
    rejected = sum(n for key, n in counts.items() if key.startswith(_REJECTED))
    return {
        "lines read": counts.total() - counts["lost_bytes"],
        **{split: counts[f"examples/{split}"] for split in _SPLITS},
        "duplicates": counts[_DUPLICATE],
        "neutral": counts["neutral"],
        OVER_CAP: counts["over_max_examples"],
        "rejected": rejected - counts[_DUPLICATE],
    }


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
        raise InputError(f"{path} is missing")
    with fileio.open(path) as file:
        for line in file:
            yield json.loads(line)
