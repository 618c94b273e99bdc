"""Unpack zip and tar archives, whose members become files of an input."""

from __future__ import annotations

import lzma
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO, NamedTuple

from core.errors import InputError
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.files import open_bytes

ZIP, TAR = "a zip archive", "a tar archive"
"""What `contents.find_kind` calls these files."""
_STEP = 1 << 20
_ERRORS = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, CorruptArchive),
    *(RuntimeError, NotImplementedError, EOFError, ValueError, struct.error, OSError),
)
"""The errors of damaged archives, and of those with a password or an unknown compression."""


class _Member(NamedTuple):
    name: str
    size: int
    stream: BinaryIO


def unpack(path: str, kind: str, folder: str, most: int, total: int) -> bool:
    """Write the members of an archive into a folder.

    Args:
      path: path or URL of the archive.
      kind: ZIP or TAR.
      folder: an existing folder.
      most: the maximum number of bytes of a member that are written.
      total: the maximum number of bytes of all members, beyond which no other one is written.

    Returns:
      Whether all bytes of all members were written.

    Raises:
      InputError: the archive is damaged, or requires a password.
    """
    is_all, written = True, 0
    try:
        with ExitStack() as stack:
            for member in _members(path, kind, stack):
                if written > total:
                    return False
                target = os.path.join(folder, member.name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with member.stream, open(target, "wb") as file:
                    left = most
                    while left and (data := member.stream.read(min(_STEP, left))):
                        file.write(data)
                        left -= len(data)
                        written += len(data)
                is_all = is_all and member.size <= most
    except _ERRORS as error:
        # The decoder of bz2 raises an OSError without a number.
        is_damaged = not isinstance(error, OSError) or error.errno is None
        why = f"is damaged ({error})" if is_damaged else f"cannot be unpacked ({error})"
        if "password" in str(error):
            why = "requires a password"
        raise InputError(
            f"{path} is {kind} that {why}: unpack it into another folder, and read that folder"
        ) from None
    return is_all


def _members(path: str, kind: str, stack: ExitStack) -> Iterator[_Member]:
    """Yield the files in an archive; those whose names leave its folder are skipped."""
    stream = stack.enter_context(open_bytes(path))
    if kind == ZIP:
        archive = stack.enter_context(zipfile.ZipFile(stream))
        for info in archive.infolist():
            if not info.is_dir() and _is_inside(info.filename):
                opened = archive.open(info)
                yield _Member(info.filename, info.file_size, opened)  # type: ignore[arg-type]
        return
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content and _is_inside(member.name):
                yield _Member(member.name, member.size, content)  # type: ignore[arg-type]


def _is_inside(name: str) -> bool:
    parts = name.split("/")
    return not name.startswith("/") and ".." not in parts and "\0" not in name
