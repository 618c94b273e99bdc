"""List the files of an input, group by group, and refuse two files with the same reviews."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from apache_beam.io.filesystems import FileSystems

from core.errors import InputError
from preprocessing.reading.archives import SUFFIXES
from preprocessing.reading.files import find_files, relative_path

HELD_OUT = {"eval": 1, "test": 2}
"""Held-out split -> priority. A text in files of several splits belongs to the highest priority."""

REMEDY = "remove one of them, or write a glob in data.splits that matches only one"
"""The remedy for two files with the same reviews."""


class SourceFile(NamedTuple):
    """A file of an input.

    Attributes:
      group: `train`, `eval`, `test` or `all`.
      path: local or gs://.
      size: in bytes, as it is stored.
      modified: in seconds since 1970.
    """

    group: str
    path: str
    size: int
    modified: float


def find_sources(base: str, patterns: Mapping[str, str]) -> list[SourceFile]:
    """Find the files of an input, ordered by group and path.

    A file that matches the globs of several groups is read once: for test rather than eval, and for
    eval rather than train. The same holds for a review in files of several groups.

    Args:
      base: folder or gs:// prefix.
      patterns: group -> glob below `base`, see `files.find_files`.

    Raises:
      InputError: see `files.find_files`; or every file of a group belongs to another group; or two
        files are an archive and its unpacked copy, or two names of one file.
    """
    groups: dict[str, str] = {}
    found = {}
    for group, pattern in patterns.items():
        for file in find_files(base, pattern):
            found[file.path] = file
            if _rank(group) >= _rank(groups.get(file.path, group)):
                groups[file.path] = group
    sources = [SourceFile(groups[path], *file) for path, file in sorted(found.items())]
    for group, pattern in patterns.items():
        if group not in groups.values():
            path = find_files(base, pattern)[0].path
            raise InputError(
                f"data.splits.{group}: every file that the glob '{pattern}' matches belongs to "
                f"another split, such as {path} to data.splits.{groups[path]}: name other files"
            )
    _refuse_copies([file.path for file in sources])
    order = list(patterns)
    return sorted(sources, key=lambda file: (order.index(file.group), file.path))


def fingerprint(base: str, sources: Sequence[SourceFile]) -> str:
    """Return a digest that changes if a file is added, removed, renamed or written to."""
    digest = hashlib.sha256()
    for file in sources:
        stored = [file.group, relative_path(base, file.path), file.size, file.modified]
        digest.update(json.dumps(stored).encode() + b"\n")
    total = sum(file.size for file in sources)
    return f"num_files:{len(sources)},total_bytes:{total},sha256:{digest.hexdigest()}"


def _rank(group: str) -> int:
    return HELD_OUT.get(group, 0)


def _refuse_copies(paths: Iterable[str]) -> None:
    unpacked: dict[str, str] = {}
    files: dict[tuple[int, int], str] = {}
    for path in paths:
        name = _ARCHIVE.sub("", path)
        other = unpacked.setdefault(name, path)
        if other != path:
            raise InputError(
                f"{other} and {path} contain the same reviews (a file and its archive, or two "
                f"archives of one file): {REMEDY}"
            )
        if FileSystems.get_scheme(path) is None:
            # A symbolic or hard link has the device and inode numbers of its target.
            status = os.stat(path)
            other = files.setdefault((status.st_dev, status.st_ino), path)
            if other != path:
                raise InputError(f"{other} and {path} are two names of one file: {REMEDY}")


_ARCHIVE = re.compile(f"({'|'.join(map(re.escape, SUFFIXES))})$", re.IGNORECASE)
