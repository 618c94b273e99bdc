"""Leave out files of an input that are not read: by globs in `data.splits`, or by moving them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from core.errors import InputError
from core.storage import is_url
from pipeline.data_check.converted import Converted
from pipeline.data_check.found import Problem
from pipeline.data_check.settings_file import data_yaml
from pipeline.data_check.splits import exact_glob, in_splits, propose_splits, split_note
from preprocessing.reading.files import SourceFile, relative_path
from preprocessing.reading.listing import joined

_SHOWN = 4
"""Maximum number of names in a message."""


@dataclass(frozen=True)
class Settled:
    """What settles some problems.

    Attributes:
      files: the files that are left.
      changes: key in `data` -> value.
      problems: the problems and their remedies.
    """

    files: tuple[SourceFile, ...]
    changes: Mapping[str, Any]
    problems: tuple[Problem, ...]


class Failing(NamedTuple):
    """A file that is not read, and the reason."""

    file: SourceFile
    error: InputError


def leave_out(
    converted: Converted,
    good: Sequence[SourceFile],
    others: Sequence[Failing],
    copies: Sequence[Failing],
    may_split: bool,
) -> Settled:
    """Return the good files without copies, and what leaves out the copies and other files.

    Args:
      converted: all files.
      good: the files that can be read.
      others: the files that cannot be read.
      copies: the good files that contain the same reviews as another one.
      may_split: whether `data.splits` may be set. It cannot name files in folders of spans.
    """
    copied = [copy.file for copy in copies]
    names = {file.path: converted.name(file.path) for file in good if file not in copied}
    kept = list(names.values())
    # The files may be a sample of those in the folder.
    not_kept = converted.names - set(kept)
    files = [file for file in good if file.path in names]
    splits = propose_splits(kept, not_kept) if may_split else {}
    notes = [split_note(splits)] if splits else []
    if splits:
        files = in_splits(files, names, splits)
    elif may_split and (others or copies):
        splits = exact_glob(kept, not_kept)
    problems: list[Problem] = []
    for failing in filter(None, [others, *([copy] for copy in copies)]):
        problems += _left_out(converted, failing, splits)
    changes = {"splits": splits} if splits else {}
    return Settled(tuple(files), changes, (*problems, *notes))


def _left_out(
    converted: Converted, failing: Sequence[Failing], splits: Mapping[str, str]
) -> list[Problem]:
    """Return the one problem of files that a setting leaves out, or one of each that is moved.

    Args:
      converted: all files.
      failing: the files.
      splits: `data.splits` that leaves them out; empty if there is none.
    """
    if not splits:
        is_local = not is_url(converted.base)
        return [
            Problem(
                converted.message(str(error)),
                commands=(_move(converted, file),) if is_local else (),
            )
            for file, error in failing
        ]
    first, *others = failing
    message = converted.message(str(first.error))
    if others:
        names = [converted.name(each.file.path) for each in others]
        message += f"; nor can a run read {joined(names, _SHOWN)}"
    return [Problem(message, data_yaml({"splits": splits}))]


def _move(converted: Converted, file: SourceFile) -> str:
    """Return the command that moves a file into another folder, where it has the same path."""
    path = converted.final(file.path)
    relative = os.path.dirname(relative_path(converted.folder, path))
    target = shlex.quote(os.path.join(f"{converted.base.rstrip('/')}-other", relative))
    return f"mkdir -p {target} && mv {shlex.quote(path)} {target}"
