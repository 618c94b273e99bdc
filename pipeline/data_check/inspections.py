"""Inspect files with some options, each time only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.errors import InputError
from preprocessing.reading.detect import Inspection
from preprocessing.reading.files import SourceFile
from preprocessing.reading.layouts import compare_files, inspect_files
from preprocessing.reading.records import SENTIMENT_TASK, ReadOptions


class Inspections:
    """The results of inspecting files, which a check does several times with the same options."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Inspection | InputError] = {}

    def inspect(
        self, files: Sequence[SourceFile], options: ReadOptions
    ) -> list[Inspection | InputError]:
        """Return the results of `layouts.inspect_files` and `layouts.compare_files`.

        Args:
          files: the files.
          options: the options for reading them.
        """
        alone = options
        if options.task != SENTIMENT_TASK:
            # They have no effect on the inspection of a single file.
            alone = replace(options, classes=(), label_map={})
        key = repr(alone)
        missing = [file for file in files if (file.path, key) not in self._found]
        for file, found in zip(missing, inspect_files(missing, alone), strict=True):
            self._found[file.path, key] = found
        return compare_files(files, [self._found[file.path, key] for file in files], options)
