"""Find the input files of a batch by their names, folders and globs; spool standard input."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence

from apache_beam.io.filesystems import FileSystems

from core.errors import InputError
from preprocessing.reading import globs
from preprocessing.reading.files import FoundFile, SourceFile, data_files, file_size, match_files

STANDARD_STREAM = "-"
_GROUP = "all"
_COPY_BYTES = 1 << 20


def find_inputs(words: Iterable[str]) -> list[SourceFile]:
    """Return each file of an input once, in the order of `words`; the files of one word by name.

    Args:
      words: paths or URLs of files and folders, and globs in the syntax of
        `preprocessing.reading.globs`. The files of a folder are those that a training would read.

    Raises:
      InputError: a word matches no file, or a file cannot be listed.
    """
    found: dict[str, FoundFile] = {}
    for word in words:
        for file in _files(word if "://" in word else os.path.abspath(os.path.expanduser(word))):
            found.setdefault(file.path, file)
    return [SourceFile(_GROUP, *file) for file in found.values()]


def spool_standard_input(folder: str) -> SourceFile:
    """Copy standard input to a file in `folder`, because readers inspect and cut files."""
    # Text without labels is recognised by the name of its file.
    path = os.path.join(folder, "standard-input.txt")
    with open(path, "wb") as target:
        if sys.stdin is not None:
            shutil.copyfileobj(sys.stdin.buffer, target, _COPY_BYTES)
    return SourceFile(_GROUP, path, os.path.getsize(path), 0.0)


def _files(word: str) -> Sequence[FoundFile]:
    is_local = FileSystems.get_scheme(word) is None
    if is_local and os.path.isdir(word):
        files = data_files(word)
    elif is_local and os.path.exists(word):
        # The name of an existing file may contain the special characters of a glob.
        status = os.stat(word)
        files = [FoundFile(word, file_size(word), status.st_mtime)]
    else:
        base = _existing_folder(word) if is_local else globs.literal_prefix(word).rpartition("/")[0]
        files = match_files(base, word.removeprefix(base).lstrip("/"))
        if not files and not is_local and globs.is_literal(word):
            files = data_files(word)
    if not files:
        raise InputError(f"--input: {word} matches no file; give files, folders or globs")
    return files


def _existing_folder(path: str) -> str:
    """Return the longest beginning of an absolute path that is a folder; it is not a pattern."""
    folder = os.path.dirname(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder
