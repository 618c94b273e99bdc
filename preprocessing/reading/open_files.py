"""Open, decompress, measure, link and delete one file, local or at a URL.

Only remote files are read by Beam's FileSystems, because their import takes seconds.
"""

from __future__ import annotations

import glob
import os
import shutil
from typing import Any, BinaryIO, cast

from core.errors import InputError
from core.storage import is_url
from preprocessing.reading.archives import (
    MAGIC_BYTES,
    DecompressedStream,
    compression,
)


def open_bytes(path: str) -> BinaryIO:
    """Open a file, local or remote; if its first bytes are those of an archive, decompress it.

    Args:
      path: path or URL of the file.

    Returns:
      A stream of the content of the file, of all members if it is an archive. At damage, `read`
      first returns all content before it, and then raises `CorruptArchive`. Only the stream of a
      plain file is seekable.

    Raises:
      InputError: for the reasons in `open_raw`.
    """
    raw = open_raw(path)
    kind = compression(path, raw.read(MAGIC_BYTES))
    raw.seek(0)
    return raw if kind is None else cast(BinaryIO, DecompressedStream(path, raw, kind))


def open_raw(path: str) -> BinaryIO:
    """Open a file, local or remote, as it is stored; return a seekable stream.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be opened or is not a regular file, or its path is not UTF-8; the
        artifacts of a run cannot contain such a path.
    """
    opened: Any
    try:
        if is_url(path):
            from apache_beam.io.filesystem import CompressionTypes
            from apache_beam.io.filesystems import FileSystems

            opened = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)
        else:
            _check_regular(path)
            # The caller closes it.
            opened = open(path, "rb")  # noqa: SIM115
    except InputError:
        raise
    except Exception as error:  # every cloud client has exceptions of its own
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{path} cannot be opened: {reason}; it must be a file that this user may read"
        ) from error
    return cast(BinaryIO, opened)


def file_compression(path: str) -> str | None:
    """Return the compression of a file, see `archives.compression`.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: for the reasons in `open_raw`.
    """
    with open_raw(path) as raw:
        return compression(path, raw.read(MAGIC_BYTES))


def _check_regular(path: str) -> None:
    if path != path.encode("utf-8", "replace").decode():
        raise InputError(f"the path {path!a} is not UTF-8: rename the file or folder")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"{path} is not a regular file: copy its content to one, or remove it")


def file_size(path: str) -> int:
    """Return the size of a file in bytes, as it is stored.

    Args:
      path: path or URL of the file.

    Raises:
      OSError: the file is missing. A remote file raises the errors of its file system in Beam.
    """
    if not is_url(path):
        return os.path.getsize(path)
    from apache_beam.io.filesystems import FileSystems

    # `FileSystems.match` would interpret a `[` in the name of a folder as a pattern.
    return int(FileSystems.get_filesystem(path).size(path))


def delete_file(path: str) -> None:
    """Delete a file, local or remote.

    Special characters of globs have no meaning, in contrast to `FileSystems.delete`.

    Args:
      path: path or URL of the file.

    Raises:
      OSError: the file cannot be deleted. A remote file raises the errors of its file system in
        Beam.
    """
    if not is_url(path):
        os.remove(path)
    else:
        from apache_beam.io.filesystems import FileSystems

        FileSystems.delete([glob.escape(path)])


def link_file(path: str, target: str) -> None:
    """Create a file with the content of another one; local ones share it if they can.

    Args:
      path: path or URL of a file that is not changed any more.
      target: the new file, in the same file system.

    Raises:
      OSError: the file cannot be written. A remote file raises the errors of its file system in
        Beam.
    """
    if is_url(path):
        from apache_beam.io.filesystems import FileSystems

        FileSystems.copy([path], [target])
        return
    try:
        os.link(path, target)
    except OSError:  # some file systems have no hard links
        shutil.copyfile(path, target)
