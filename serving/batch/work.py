"""The units of a batch, and the folder of finished ones, from which a killed run resumes.

The folder is next to the output. It has a manifest of everything that the result depends on, and a
file with the lines of each finished unit. The file gets its name, with the number of lines, when it
is complete.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from core.errors import InputError
from core.files import WITHOUT_LOCKS
from preprocessing.reading.files import delete_file, open_raw
from preprocessing.reading.pieces import Piece

_MANIFEST = "manifest.json"
_LOCK = "lock"
_UNIT_FILE = re.compile(r"/(\d+)-(\d+)\.arrow$")
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


def create(path: str) -> Any:
    """Open a file for writing, without the compression that Beam infers from names."""
    return FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)


def is_local(path: str) -> bool:
    """Return whether a path is in the file system of this machine."""
    return FileSystems.get_scheme(path) is None


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """Create the work folder and lock it, so that no other process of this machine uses it.

    Some file systems support no locks. There the folder is used without one.

    Raises:
      InputError: the folder cannot be created, or another process has locked it.
    """
    if not is_local(folder):
        yield
        return
    try:
        os.makedirs(folder, exist_ok=True)
        lock = open(os.path.join(folder, _LOCK), "w")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(
            f"--output: {folder} cannot be created ({error.strerror}); name a file in a folder "
            "that this user may write to"
        ) from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"--output: another process is writing this file (work folder {folder}); wait "
                "until that process has ended, or name another file"
            ) from None
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
        yield


def start_or_resume(folder: str, units: Sequence[Unit], depends_on: dict[str, str]) -> None:
    """Empty the work folder, unless it belongs to the same work.

    Args:
      folder: the work folder.
      units: the units of the whole input.
      depends_on: everything else that the result depends on.
    """
    # The repr of a unit contains the layout of each file.
    parts = hashlib.sha256(repr(units).encode()).hexdigest()
    manifest = {**depends_on, "units": f"{len(units)},sha256:{parts}"}
    path = f"{folder}/{_MANIFEST}"
    content = json.dumps(manifest).encode()
    if FileSystems.exists(path):
        with open_raw(path) as file:
            if file.read() == content:
                return
    clear(folder)
    with create(path) as file:
        file.write(content)


def clear(folder: str) -> None:
    """Delete the files of the work folder, but not the lock, which belongs to this process."""
    # The manifest is deleted first: without a manifest, the remaining files are never used.
    for path in sorted(_listed(folder), key=lambda path: not path.endswith(_MANIFEST)):
        if not path.endswith(f"/{_LOCK}"):
            delete_file(path)


def remove(folder: str) -> None:
    clear(folder)
    if is_local(folder):
        shutil.rmtree(folder, ignore_errors=True)


def finish(path: str, folder: str, unit: int, lines: int) -> None:
    """Give the complete file of a unit its name. Beam may retry a unit, or run it twice."""
    FileSystems.rename([path], [unit_file(folder, unit, lines)])


def unit_file(folder: str, unit: int, lines: int) -> str:
    """Return the path of the Arrow stream of a finished unit; see `stage.SCHEMA`."""
    return f"{folder}/{unit:06d}-{lines}.arrow"


def finished(folder: str) -> dict[int, int]:
    """Return number -> lines of each finished unit."""
    names = (_UNIT_FILE.search(path) for path in _listed(folder))
    return {int(found[1]): int(found[2]) for found in names if found}


def _listed(folder: str) -> list[str]:
    if is_local(folder):
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    found = FileSystems.match([f"{glob.escape(folder)}/*"])[0].metadata_list
    return [file.path for file in found]
