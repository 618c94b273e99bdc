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
from preprocessing.reading.contents import DOWNLOAD_AGAIN, ZIP, Kind
from preprocessing.reading.open_files import open_bytes

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


def unpack(path: str, kind: Kind, folder: str, most: int, total: int) -> bool:
    """Write the members of an archive into a folder.

    Args:
      path: path or URL of the archive.
      kind: `contents.ZIP` or `contents.TAR`.
      folder: an existing folder.
      most: the maximum number of bytes of a member that are written.
      total: the maximum number of bytes of all members, beyond which no other one is written.

    Returns:
      Whether all bytes of all members were written.

    Raises:
      InputError: the archive is damaged or requires a password, two members have the same name, or
        the name of a member leads out of the folder.
    """
    is_all, written = True, 0
    targets: set[str] = set()
    try:
        with ExitStack() as stack:
            for member in _members(path, kind, stack):
                if written > total:
                    return False
                target = os.path.normpath(os.path.join(folder, member.name.lstrip("/")))
                if not target.startswith(os.path.join(folder, "")):
                    why = f"in which the name {member.name!r} leads out of the folder"
                    raise InputError(_refused(path, kind, why))
                if target in targets:
                    why = f"in which two members have the name {member.name!r}"
                    raise InputError(_refused(path, kind, why))
                targets.add(target)
                written += _write(member, target, most)
                is_all = is_all and member.size <= most
    except InputError:  # It is a ValueError too.
        raise
    except _ERRORS as error:
        # The decoder of bz2 raises an OSError without a number.
        is_readable = isinstance(error, OSError) and error.errno is not None
        if "password" in str(error):
            why = "that requires a password"
        elif is_readable or isinstance(error, NotImplementedError):
            why = f"that cannot be unpacked ({error})"
        else:
            # No other program can unpack it either.
            raise InputError(
                f"{path} is {kind.name} that is damaged or incomplete ({error}): {DOWNLOAD_AGAIN}"
            ) from None
        raise InputError(_refused(path, kind, why)) from None
    return is_all


def _write(member: _Member, target: str, most: int) -> int:
    """Write the beginning of a member, at most `most` bytes; return the number of these bytes."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    left = most
    with member.stream, open(target, "wb") as file:
        while left and (data := member.stream.read(min(_STEP, left))):
            file.write(data)
            left -= len(data)
    return most - left


def _refused(path: str, kind: Kind, why: str) -> str:
    """Return the message about an archive that is not unpacked."""
    return f"{path} is {kind.name} {why}: {kind.remedy}"


def _members(path: str, kind: Kind, stack: ExitStack) -> Iterator[_Member]:
    """Yield the files in an archive."""
    stream = stack.enter_context(open_bytes(path))
    if kind == ZIP:
        archive = stack.enter_context(zipfile.ZipFile(stream))
        for info in archive.infolist():
            if not info.is_dir():
                opened = archive.open(info)
                yield _Member(info.filename, info.file_size, opened)  # type: ignore[arg-type]
        return
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isfile() else None
            if content:
                yield _Member(member.name, member.size, content)  # type: ignore[arg-type]
