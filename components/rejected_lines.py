"""The files of the artifact RejectedLines: the rejected lines, and the counts of all lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfx.dsl.io import fileio

from components.line_counts import LineCounts, RejectedLine
from core.errors import InputError
from core.files import list_files

_SUMMARY_FILE = "summary.json"
_FILES_FILE = "files.jsonl"
_LINES_FILE, _LINES_FILES = "lines-00000-of-00001.jsonl", "lines*"
_PATH = "file"
"""The key of the path in a line of _FILES_FILE. All other keys are names of counts."""


def write_counts(folder: str, by_file: Mapping[str, LineCounts], total: LineCounts) -> None:
    """Write the counts of each file, and their sum.

    Args:
      folder: URI of the artifact.
      by_file: path of each file -> its counts.
      total: the sum of all counts.

    Raises:
      OSError, tensorflow.errors.OpError: a file cannot be written.
    """
    with fileio.open(os.path.join(folder, _FILES_FILE), "w") as target:
        for path, counts in sorted(by_file.items()):
            target.write(json.dumps({_PATH: path, **counts.to_file()}, sort_keys=True) + "\n")
    with fileio.open(os.path.join(folder, _SUMMARY_FILE), "w") as target:
        target.write(json.dumps(total.to_file(), indent=2, sort_keys=True))


def read_counts(folder: str) -> Iterator[tuple[str, LineCounts]]:
    """Yield the path of each file and its counts, in the order of the paths.

    Args:
      folder: URI of the artifact.

    Raises:
      InputError: the artifact was deleted.
      ValueError, KeyError: the file of the counts is damaged.
    """
    path = os.path.join(folder, _FILES_FILE)
    if not fileio.exists(path):
        raise InputError(f"{path} is missing")
    for stored in _json_lines(path):
        file = stored.pop(_PATH)
        yield file, LineCounts.from_file(stored)


def write_lines(folder: str, lines: Iterable[RejectedLine]) -> None:
    """Write rejected lines, in the given order.

    Args:
      folder: URI of the artifact.
      lines: the rejected lines.

    Raises:
      OSError, tensorflow.errors.OpError: the file cannot be written.
    """
    with fileio.open(os.path.join(folder, _LINES_FILE), "w") as target:
        for line in lines:
            target.write(json.dumps(line._asdict()) + "\n")


def read_lines(folder: str) -> Iterator[RejectedLine]:
    """Yield the rejected lines in the order in which they were written; none if there is no file.

    Args:
      folder: URI of the artifact.

    Raises:
      ValueError, TypeError: a file of lines is damaged.
    """
    # An artifact without rejected lines may have no file.
    for path in list_files(folder, _LINES_FILES):
        for stored in _json_lines(path):
            yield RejectedLine(**stored)


def _json_lines(path: str) -> Iterator[dict[str, Any]]:
    with fileio.open(path) as file:
        for line in file:
            yield json.loads(line)
