"""Find, open and decompress review files, local or gs://, through Beam's FileSystems."""

from __future__ import annotations

import os
import re
from typing import BinaryIO, NamedTuple, cast

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from core.errors import InputError
from preprocessing.reading import globs
from preprocessing.reading.archives import (
    MAGIC_BYTES,
    DecompressedStream,
    compression,
)

_EVERYTHING = ("*", "**", "**/*")
# Files beside the data in a folder that was downloaded, or that Spark or Beam wrote.
_NOT_DATA = re.compile(
    r"[._].*|(readme|license|licence|changelog|citation)([._-].*)?|.*\.(md|rst|crc|md5|sha256)",
    re.IGNORECASE,
)


class FoundFile(NamedTuple):
    """A file as its file system lists it: `size` in bytes, `modified` in seconds since 1970."""

    path: str
    size: int
    modified: float


def find_files(base: str, pattern: str) -> list[FoundFile]:
    """Find the files under the folder or `gs://` prefix `base` that match `pattern`, sorted.

    All code that reads, checks or fingerprints an input lists its files with this function.
    See `globs.compile_glob` for the pattern, which is relative to `base`. `base` is not a pattern,
    whatever characters it contains. With the pattern `*`, `**` or `**/*`, files that are not data
    are left out: hidden files (`.name`, `_SUCCESS`), README, LICENSE and the like, Markdown and
    checksums. With any other pattern every match counts.

    Raises:
        InputError: the folder is missing or is a file, no file matches, or a file or the folder
            cannot be read.
    """
    if not base.strip() or not pattern.strip():
        raise InputError("data.input_base and the glob of a split must not be empty")
    local = FileSystems.get_scheme(base) is None
    if local:
        _check_folder(base)
    found = data_files(base, pattern) if pattern in _EVERYTHING else match_files(base, pattern)
    if not found:
        raise InputError(
            f"no file under {base} matches the glob '{pattern}': "
            "data.splits takes file names or globs relative to data.input_base"
        )
    if local:
        for file in found:
            open_raw(file.path).close()
    return found


def relative_path(base: str, path: str) -> str:
    """Return the path of a file that `find_files` found, relative to its `base`."""
    return path.removeprefix(base.rstrip("/") + "/")


def _check_folder(base: str) -> None:
    if not os.path.exists(base):
        raise InputError(
            f"the folder {base} does not exist: "
            "data.input_base must be a folder or a gs:// prefix with review files"
        )
    if not os.path.isdir(base):
        raise InputError(
            f"{base} is a file: data.input_base must be its folder, "
            "and data.splits can name the file in it"
        )
    if not os.access(base, os.R_OK | os.X_OK):
        raise InputError(
            f"the folder {base} cannot be read: this user needs permission to list and open it"
        )


def data_files(base: str, pattern: str = "*") -> list[FoundFile]:
    """Return the files under `base` that match `pattern`, sorted, without those that are not data.

    Raises:
        InputError: see `match_files`.
    """
    found = match_files(base, pattern)
    return sorted(file for file in found if _is_data(relative_path(base, file.path)))


def match_files(base: str, pattern: str) -> list[FoundFile]:
    """Return the files under `base` that match `pattern`, sorted; see `find_files`.

    Raises:
        InputError: the folder or prefix cannot be listed.
    """
    folder = base.rstrip("/") or "/"
    pattern = relative_path(folder, pattern)
    prefix = globs.literal_prefix(pattern)
    # Beam lists the files, and `globs` matches their names. In Beam's globs `**/` needs at least
    # one folder, and `?` matches a slash.
    everything = "" if globs.is_literal(pattern) else "**"
    try:
        literal = re.sub(r"([\[*?])", r"[\1]", FileSystems.join(folder, prefix))
        result = FileSystems.match([literal + everything])[0]
    except Exception as error:  # every cloud client has exceptions of its own
        raise InputError(
            f"{base} cannot be listed: {error}; data.input_base must be a folder or "
            "a gs:// prefix that this user or service account may read"
        ) from error
    matches = globs.compile_glob(pattern).fullmatch
    return sorted(
        FoundFile(found.path, int(found.size_in_bytes), float(found.last_updated_in_seconds or 0))
        for found in result.metadata_list
        # On gs:// a "folder" can be an empty object whose name ends with a slash.
        if not found.path.endswith("/") and matches(relative_path(folder, found.path))
    )


def _is_data(relative: str) -> bool:
    return not any(_NOT_DATA.fullmatch(part) for part in relative.split("/") if part)


def open_bytes(path: str) -> BinaryIO:
    """Open a file, local or remote, and decompress it by its first bytes.

    bz2, gzip and zstd are detected by their magic bytes, whatever the name of the file. All members
    of an archive are read. The stream of a file that is not compressed is seekable.

    Raises:
        InputError: the file cannot be opened, see `open_raw` and `compression`.
        CorruptArchive: the file has the name of an archive and is empty. Reading the stream raises
            it too, after all content before the damage.
    """
    raw = open_raw(path)
    try:
        head = raw.read(MAGIC_BYTES)
        raw.seek(0)
        kind = compression(path, head)
    except BaseException:
        raw.close()
        raise
    return raw if kind is None else cast(BinaryIO, DecompressedStream(path, raw, kind))


def file_size(path: str) -> int:
    """Return the size of a file in bytes, as it is stored."""
    # `FileSystems.match` would interpret a `[` in the name of a folder as a pattern.
    return int(FileSystems.get_filesystem(path).size(path))


def open_raw(path: str) -> BinaryIO:
    """Open a file, local or remote, as it is stored; the stream is seekable.

    Raises:
        InputError: the file cannot be opened.
    """
    try:
        return cast(
            BinaryIO,
            FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED),
        )
    except Exception as error:  # every cloud client has exceptions of its own
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{path} cannot be opened: {reason}; it must be a file that this user may read"
        ) from error
