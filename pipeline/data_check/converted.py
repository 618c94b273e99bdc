"""The files of an input, of which those that no run reads are converted for the look."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.files import free_name
from core.storage import is_url
from pipeline.data_convert.changes import Change
from pipeline.data_convert.convert import LOOK, Converter, Output
from pipeline.data_convert.names import SUFFIX
from preprocessing.reading import globs
from preprocessing.reading.files import ALL, SourceFile, relative_path
from preprocessing.reading.listing import joined
from preprocessing.reading.span_pattern import parse_pattern

_SHOWN = 4


class Converted:
    """The files of an input, or of very many some, of which some are replaced by converted parts.

    Args:
      base: the folder of the input.
      files: all files of the input.
      max_fraction: the maximum fraction of lines that may be in another encoding than UTF-8.
      scratch: an existing empty folder for the converted parts.

    Attributes:
      base: the folder of the input.
      outputs: the files, with what was converted.
      errors: path of a file -> why it cannot be converted.
      folder: the folder that the command writes; `base` if no file has to be converted.
      partial: the paths of converted parts that are not the whole file.
      number_of_files: number of files of the input, where the folders of a converted file count as
        one, and each member of an archive.
    """

    def __init__(
        self, base: str, files: Sequence[SourceFile], max_fraction: float, scratch: str
    ) -> None:
        self.base = base
        converter = Converter(scratch, max_fraction, LOOK)
        self.outputs = converter.convert(base, files)
        self.number_of_files = len(self.outputs) + converter.left_out
        self.errors = {one.file.path: InputError(one.error) for one in self.outputs if one.error}
        self.partial = {one.file.path for one in self.outputs if not one.is_all}
        self._by_path = {one.file.path: one for one in self.outputs}
        is_one = len(files) == 1 and files[0].group != ALL
        self._source = files[0].path if is_one else base
        self.folder = base
        if self.changed:
            plain = SUFFIX.sub("", self._source).rstrip("/")
            self.folder = free_name(f"{plain}-utf8", "", os.path.exists)

    @property
    def files(self) -> list[SourceFile]:
        """The files, with the paths of the converted parts."""
        return [one.file for one in self.outputs]

    @property
    def names(self) -> set[str]:
        """The paths of the files after the command, below its folder."""
        return {one.name for one in self.outputs}

    @property
    def changed(self) -> list[Output]:
        """The files that have to be converted."""
        return [one for one in self.outputs if one.changes]

    def final(self, path: str) -> str:
        """Return the path of a file after the command.

        Args:
          path: the path of the file, or of its converted part.
        """
        return os.path.join(self.folder, self.name(path))

    def new_base(self, input_base: str) -> str:
        """Return the `data.input_base` of the settings that read the converted files.

        Args:
          input_base: the value of the setting now, a folder or a pattern of spans.
        """
        pattern = parse_pattern(input_base)
        return pattern.below(self.folder) if pattern else self.folder

    def name(self, path: str) -> str:
        """Return the path of a file after the command, below its folder.

        Args:
          path: the path of the file, or of its converted part.
        """
        return self._by_path[path].name

    def message(self, text: str) -> str:
        """Return a message with the paths of the files in place of those of converted parts."""
        for one in self.outputs:
            text = text.replace(one.file.path, os.path.join(self.base, one.shown))
        return text

    def split_globs(self, splits: Mapping[Any, str]) -> dict[str, str] | None:
        """Return `data.splits` for the new folder; None if no globs match the same files there.

        Args:
          splits: `data.splits` for the folder of the input.
        """
        found = {}
        for split, glob in splits.items():
            names = {one.name for one in self.outputs if one.file.group == split}
            plain = SUFFIX.sub("", glob)
            new = globs.first_exact(
                (glob, plain, globs.inside(plain), *names), names, self.names - names
            )
            if new is None:
                return None
            found[split] = new
        return found

    def commands(self) -> tuple[str, ...]:
        """Return the command that writes all files into `folder`; none without need."""
        if not self.changed or is_url(self.base):
            return ()
        source, target = shlex.quote(self._source), shlex.quote(self.folder)
        return (f"amazon-reviews data convert {source} {target}",)

    def problem(self) -> str:
        """Return what has to be converted, in one line."""
        found: dict[Change, dict[str, None]] = {}  # what it is -> the files, each once
        for one in self.changed:
            is_file = is_url(one.source) or os.path.isfile(one.source)
            name = relative_path(self.base, one.source) if is_file else one.shown
            found.setdefault(one.changes[0], {})[name] = None
        parts = [
            f"{joined(list(names), _SHOWN)} {what.predicate(len(names))}"
            for what, names in found.items()
        ]
        return (
            f"{', '.join(parts)}; a run reads lines of UTF-8 (CSV, JSON lines, fastText) and "
            "Parquet: convert the files into a new folder"
        )
