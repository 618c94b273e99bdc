"""The input of a run, for its report: the lines of each file, the classes, and the anomalies."""

from __future__ import annotations

import os
from typing import NamedTuple

from tfx.dsl.io import fileio

from components.data_gate import class_counts, read_anomalies
from components.line_counts import DUPLICATE, SPLITS, LineCounts
from components.rejected_lines import read_counts, read_lines
from core.errors import InputError
from preprocessing.labels import Labels

_FILES_SHOWN = 50
_SAMPLES = 3


class Reason(NamedTuple):
    """A reason for rejections: its name, the number of rejected lines, and some of the lines."""

    name: str
    lines: int
    samples: list[str]


class InputData(NamedTuple):
    """The input of a run.

    Attributes:
      total: the counts of the lines of all files.
      files: (name, counts of the lines) of each file that the report lists.
      more_files: number of files that the report does not list.
      reasons: the reasons for rejections, the most frequent one first.
    """

    total: LineCounts
    files: list[tuple[str, LineCounts]]
    more_files: int
    reasons: list[Reason]


def read_input(rejected: str) -> InputData:
    """Return the input of a run from the output `rejected` of its ReviewExampleGen.

    Args:
      rejected: URI of the output.

    Raises:
      InputError: the output was deleted.
      ValueError, KeyError, TypeError: a file of the output is damaged.
    """
    total = LineCounts()
    files: list[tuple[str, LineCounts]] = []
    more_files = 0
    for path, counts in read_counts(rejected):
        total += counts
        if len(files) < _FILES_SHOWN:
            files.append((os.path.basename(path), counts))
        else:
            more_files += 1
    return InputData(total, files, more_files, _reasons(rejected, total))


def columns(counts: LineCounts, total: LineCounts) -> dict[str, int]:
    """Return a row of the table of files: heading -> number of lines.

    The first column has the number of all lines, which is the sum of the other columns.

    Args:
      counts: the counts of the row.
      total: the counts of all files. They decide whether the table has a column for reviews over
        `data.max_examples`.
    """
    row = {"lines read": counts.lines}
    for split in SPLITS:
        row[split] = counts.examples[split]
    row["duplicates"] = counts.rejected[DUPLICATE]
    row["left out by label"] = counts.neutral
    if total.over_max_examples:
        row["over data.max_examples"] = counts.over_max_examples
    row["rejected"] = counts.rejected.total() - counts.rejected[DUPLICATE]
    return row


def read_balance(statistics: str, labels: Labels) -> dict[str, dict[str, float]]:
    """Return split -> class -> its fraction, in the sample that StatisticsGen read.

    Args:
      statistics: URI of the output of StatisticsGen.
      labels: the classes.

    Raises:
      InputError: the statistics were deleted.
      google.protobuf.message.DecodeError: the statistics are damaged.
    """
    found = {
        split: class_counts(statistics, split, labels) for split in _existing_splits(statistics)
    }
    return {
        split: {label: count / whole for label, count in counts.items()}
        for split, counts in found.items()
        if (whole := sum(counts.values()))
    }


def read_all_anomalies(anomalies: str) -> list[str]:
    """Return a line for each anomaly that ExampleValidator found in any split.

    Args:
      anomalies: URI of the output of ExampleValidator.

    Raises:
      InputError: the anomalies were deleted.
      google.protobuf.message.DecodeError: the anomalies are damaged.
    """
    splits = _existing_splits(anomalies)
    return [line for split in splits for line in read_anomalies(anomalies, split)]


def _existing_splits(folder: str) -> list[str]:
    splits = [split for split in SPLITS if fileio.exists(f"{folder}/Split-{split}")]
    if not splits:
        raise InputError(f"{folder} has no split")
    return splits


def _reasons(rejected: str, total: LineCounts) -> list[Reason]:
    reasons = {name: Reason(name, lines, []) for name, lines in total.rejected.most_common()}
    incomplete = set(reasons)
    for line in read_lines(rejected):
        if not incomplete:
            break
        samples = reasons[line.reason].samples
        if len(samples) < _SAMPLES:
            samples.append(f"{line.file_position()} {line.detail}")
        else:
            incomplete.discard(line.reason)
    return list(reasons.values())
