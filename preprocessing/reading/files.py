"""Find, open and decompress review files, local or gs://, through Beam's FileSystems.

`find_sources` lists the files of an input, group by group.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, NamedTuple, cast

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from core.errors import InputError
from preprocessing.reading import globs
from preprocessing.reading.archives import MAGIC_BYTES, DecompressedStream, compression

HELD_OUT = {"eval": 1, "test": 2}
"""Held-out split -> priority. A text in files of several splits belongs to the highest priority."""

_DATA_ONLY = ("*", globs.EVERYTHING, "**/*")


class SourceFile(NamedTuple):
    """A file of an input, as its file system lists it."""

    path: str  # local or gs://
    size: int  # in bytes, as it is stored
    modified: float  # in seconds since 1970
    group: str = "all"  # `train`, `eval`, `test` or `all`


def find_sources(base: str, patterns: Mapping[str, str]) -> list[SourceFile]:
    """Find the files of an input, ordered by group and path.

    A file that matches the globs of several groups belongs to the one with the highest priority.

    Args:
      base: folder or gs:// prefix.
      patterns: group -> glob below `base`, see `match_files`.

    Raises:
      InputError: the folder is missing or cannot be listed, or a group has no file.
    """
    found = {}
    for group in sorted(patterns, key=lambda group: HELD_OUT.get(group, 0)):
        for file in find_files(base, patterns[group]):
            found[file.path] = file._replace(group=group)
    groups = [file.group for file in found.values()]
    for group, pattern in patterns.items():
        if group not in groups:
            raise InputError(
                f"data.splits.{group}: every file that '{pattern}' matches belongs to another split"
            )
    order = list(patterns)
    return sorted(found.values(), key=lambda file: (order.index(file.group), file.path))


def fingerprint(base: str, sources: Sequence[SourceFile]) -> str:
    """Return a digest that changes if a file is added, removed, renamed or written to."""
    digest = hashlib.sha256()
    for file in sources:
        stored = [file.group, relative_path(base, file.path), file.size, file.modified]
        digest.update(json.dumps(stored).encode() + b"\n")
    total = sum(file.size for file in sources)
    return f"num_files:{len(sources)},total_bytes:{total},sha256:{digest.hexdigest()}"


def find_files(base: str, pattern: str) -> list[SourceFile]:
    """Return the files of `match_files`, of which there is at least one."""
    if not base.strip() or not pattern.strip():
        raise InputError("data.input_base and the glob of a split must not be empty")
    if FileSystems.get_scheme(base) is None and not os.path.isdir(base):
        what = "is a file" if os.path.exists(base) else "does not exist"
        raise InputError(
            f"{base} {what}: data.input_base must be a folder or a gs:// prefix with review files, "
            "and data.splits can name the files in it"
        )
    found = match_files(base, pattern)
    if not found:
        raise InputError(
            f"{base} and its subfolders contain no file of reviews that matches '{pattern}': set "
            "data.input_base to another folder, or data.splits to globs relative to it (hidden "
            "files, READMEs, licences and checksums need a glob of their own)"
        )
    return found


def relative_path(base: str, path: str) -> str:
    """Return the path of a file that `find_files` found, relative to its `base`."""
    return path.removeprefix(base.rstrip("/") + "/")


def match_files(base: str, pattern: str) -> list[SourceFile]:
    """Return the files under `base` that match `pattern`, sorted.

    See `globs.matches` for the pattern, which is relative to `base`. `base` is not a pattern,
    whatever characters it contains. With the pattern `*`, `**` or `**/*`, files that are not data
    are left out, see `globs.is_data`. With any other pattern every match counts.

    Raises:
        InputError: the folder or prefix, or a subfolder that may contain matches, cannot be listed.
    """
    folder = base.rstrip("/") or "/"
    pattern = relative_path(folder, pattern)
    list_files = _local_files if FileSystems.get_scheme(folder) is None else _remote_files
    try:
        return sorted(list_files(folder, pattern))
    except Exception as error:  # every cloud client has exceptions of its own
        raise InputError(
            f"{base} cannot be listed: {error}; it must be a folder or a gs:// prefix that this "
            "user or service account may read"
        ) from error


def _may_be_data(relative: str, pattern: str) -> bool:
    return pattern not in _DATA_ONLY or globs.is_data(relative)


def _remote_files(folder: str, pattern: str) -> Iterator[SourceFile]:
    # Beam lists the files, and `globs` matches their names. In Beam's globs `**/` needs at least
    # one folder, and `?` matches a slash.
    prefix = glob.escape(FileSystems.join(folder, globs.literal_prefix(pattern)))
    [result] = FileSystems.match([prefix + "**"])
    for found in result.metadata_list:
        relative = relative_path(folder, found.path)
        # On gs:// a "folder" can be an empty object whose name ends with a slash.
        is_file = not relative.endswith("/") and _may_be_data(relative, pattern)
        if is_file and globs.matches(relative, pattern):
            modified = float(found.last_updated_in_seconds or 0)
            yield SourceFile(found.path, int(found.size_in_bytes), modified)


def _local_files(folder: str, pattern: str) -> Iterator[SourceFile]:
    """Yield the files that match; links to folders are followed, and each folder is listed once.

    Beam's listing omits files that cannot be read, and files behind a link to a folder.
    """
    waiting = [""] if os.path.isdir(folder) else []
    listed = set()
    while waiting:
        inside = waiting.pop()
        real = os.path.realpath(os.path.join(folder, inside))
        if real in listed:
            continue
        listed.add(real)
        for entry in os.scandir(os.path.join(folder, inside)):
            relative = inside + entry.name
            if not _may_be_data(relative, pattern):
                continue
            if entry.is_dir():
                if globs.may_contain(relative, pattern):
                    # All folders are listed before all links.
                    waiting.insert(0 if entry.is_symlink() else len(waiting), f"{relative}/")
            elif globs.matches(relative, pattern):
                status = entry.stat()
                path = os.path.join(folder, relative)
                yield SourceFile(path, status.st_size, status.st_mtime)


def open_bytes(path: str) -> BinaryIO:
    """Open a file, local or remote, and decompress it by its first bytes.

    All members of an archive are read. The stream of a file that is not compressed is seekable.
    Reading an archive raises `CorruptArchive` after the content before the damage.

    Raises:
        InputError: see `open_raw`.
    """
    raw = open_raw(path)
    kind = compression(path, raw.read(MAGIC_BYTES))
    raw.seek(0)
    return raw if kind is None else cast(BinaryIO, DecompressedStream(path, raw, kind))


def file_size(path: str) -> int:
    """Return the size of a file in bytes, as it is stored."""
    # `FileSystems.match` would interpret a `[` in the name of a folder as a pattern.
    return int(FileSystems.get_filesystem(path).size(path))


def delete_file(path: str) -> None:
    """Delete a file; `FileSystems.delete` would delete all files that match its path."""
    if FileSystems.get_scheme(path) is None:
        os.remove(path)
    else:
        FileSystems.delete([glob.escape(path)])


def open_raw(path: str) -> BinaryIO:
    """Open a file, local or remote, as it is stored; the stream is seekable.

    Raises:
        InputError: the file cannot be opened, is not a regular file, or has a name that is not
            UTF-8, which the artifacts of a run cannot contain.
    """
    if FileSystems.get_scheme(path) is None:
        if path != path.encode("utf-8", "replace").decode():
            raise InputError(f"the path {path!a} is not UTF-8: rename the file or folder")
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputError(f"{path} is not a regular file: copy its content to one, or remove it")
    try:
        opened = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
        return cast(BinaryIO, opened)
    except Exception as error:  # every cloud client has exceptions of its own
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{path} cannot be opened: {reason}; it must be a file that this user may read"
        ) from error
