"""The units of a batch, and the folder of finished ones, from which a killed run resumes.

The hidden folder is next to the output. It has a file with the lines of each finished unit. The
file gets its name when it is complete: a digest of everything that the lines depend on, the number
of the unit, and the number of lines. Files with another digest are of other work.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from typing import IO, Any, NamedTuple

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from core.errors import InputError
from core.files import WITHOUT_LOCKS
from preprocessing.reading.files import delete_file
from preprocessing.reading.pieces import Piece

_LOCK = "lock"
_BYTES_PER_UNIT = 64 << 20
"""Estimated bytes of text. A killed run repeats at most its unfinished units."""


class Unit(NamedTuple):
    """Consecutive pieces of the input. `number` counts the units from 0."""

    number: int
    pieces: tuple[Piece, ...]

    @property
    def bytes(self) -> int:
        """The estimated bytes of its text."""
        return sum(piece.unpacked for piece in self.pieces)


def in_units(pieces: Iterable[Piece]) -> list[Unit]:
    """Return units of whole pieces; a file that cannot be cut is a single piece."""
    units: list[list[Piece]] = []
    size = 0
    for piece in pieces:
        if not units or size + piece.unpacked > _BYTES_PER_UNIT:
            units.append([])
            size = 0
        units[-1].append(piece)
        size += piece.unpacked
    return [Unit(number, tuple(unit)) for number, unit in enumerate(units)]


def work_folder(output: str) -> str:
    """Return the hidden folder next to an output file."""
    folder, _, name = output.rpartition("/")
    return f"{folder}/.{name}.partial"


def digest(*depends_on: object) -> str:
    """Return a digest of everything on which the lines of the units depend, by its repr."""
    return hashlib.sha256(repr(depends_on).encode()).hexdigest()[:16]


def create(path: str) -> Any:
    """Open a file for writing, without the compression that Beam infers from names."""
    return FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)


def is_local(path: str) -> bool:
    """Return whether a path is in the file system of this machine."""
    return FileSystems.get_scheme(path) is None


def lock(folder: str) -> contextlib.AbstractContextManager[IO[str] | None]:
    """Create the work folder and lock it for a context, against the processes of this machine.

    Some file systems support no locks. There the folder is used without one.

    Raises:
      InputError: the folder cannot be created, or another process has locked it.
    """
    if not is_local(folder):
        return contextlib.nullcontext()
    try:
        os.makedirs(folder, exist_ok=True)
        file = open(f"{folder}/{_LOCK}", "w")  # noqa: SIM115 - the context closes it
    except OSError as error:
        raise InputError(f"--output: {folder} cannot be created: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"--output: another process is writing this file (work folder {folder})"
        ) from None
    except OSError as error:
        if error.errno not in WITHOUT_LOCKS:
            raise
    return file


def unit_file(folder: str, digest: str, unit: int, lines: int) -> str:
    """Return the path of the Arrow stream of a finished unit; see `stage.SCHEMA`."""
    return f"{folder}/{digest}-{unit:06d}-{lines}.arrow"


def finished(folder: str, digest: str) -> dict[int, int]:
    """Return number -> lines of each finished unit."""
    pattern = re.compile(rf"/{digest}-(\d+)-(\d+)\.arrow$")
    names = map(pattern.search, _listed(folder))
    return {int(found[1]): int(found[2]) for found in names if found}


def remove_others(folder: str, digest: str) -> None:
    """Delete the files that are not of this work."""
    for path in _listed(folder):
        if not path.startswith((f"{folder}/{digest}-", f"{folder}/{_LOCK}")):
            delete_file(path)


def remove(folder: str) -> None:
    """Delete the work folder."""
    if is_local(folder):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        for path in _listed(folder):
            delete_file(path)


def _listed(folder: str) -> list[str]:
    if is_local(folder):
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    found = FileSystems.match([f"{glob.escape(folder)}/*"])[0].metadata_list
    return [file.path for file in found]
