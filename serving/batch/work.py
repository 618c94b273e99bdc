"""The units of a batch, the Beam stage that scores them, and the folder of finished ones.

A killed run resumes from the folder. It is hidden, next to the output, and has a file with the
lines of each finished unit. The file gets its name when it is complete: a digest of everything that
the lines depend on, the number of the unit, and the number of lines. Files with another digest are
of other work.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import re
import shutil
import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.utils.shared import Shared

from core import progress
from core.errors import InputError
from core.files import WITHOUT_LOCKS
from core.progress import Progress
from preprocessing.reading.files import delete_file
from preprocessing.reading.pieces import Piece
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import Batch
from serving.predict_text import Outputs, load_predict_text

_LOCK = "lock"
_BYTES_PER_UNIT = 64 << 20
"""Estimated bytes of text. A killed run repeats at most its unfinished units."""
SCHEMA = pa.schema(
    [
        ("piece", pa.int32()),
        ("position", pa.int64()),
        ("probability", pa.float32()),
        ("label", pa.int32()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("id", pa.string()),
    ]
)
"""Columns of the lines of a unit: the index of a piece, the position in it, and the prediction and
the id of a review, or the reason and the detail of a rejected line. All lines of a record batch are
reviews of one piece, or all are rejected lines of one piece."""
REVIEWS, BYTES = "reviews", "bytes"
"""Units of the progress: lines (reviews and rejected lines), and estimated bytes of text."""
_LINE_OVERHEAD = 12
"""Estimated bytes of a line besides its text."""


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
    """Return the path of the Arrow stream of a finished unit; see SCHEMA."""
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


class ScoreUnit(beam.DoFn):
    """Unit -> files in the work folder, and no element."""

    def __init__(self, model: str, folder: str, digest: str):
        """Construct the function with the folder of a pushed model, and the names of the files."""
        self._model = model
        self._folder = folder
        self._digest = digest
        self._shared = Shared()

    def process(self, unit: Unit) -> Iterator[Any]:
        """Score every review of the unit.

        One thread reads and writes, others decompress, and others score. At most one batch more
        than there are threads is in memory.
        """
        predict = self._shared.acquire(lambda: load_predict_text(self._model), self._model)
        cores = len(os.sched_getaffinity(0))
        path = f"{self._folder}/{uuid.uuid4().hex}.unfinished"
        lines = 0
        with (
            ThreadPoolExecutor(cores) as readers,
            ThreadPoolExecutor(cores) as scorers,
            create(path) as file,
            pa.ipc.new_stream(file, SCHEMA) as stream,
            Progress(REVIEWS, str(unit.number)) as reviews,
            Progress(BYTES, str(unit.number)) as size,
        ):
            waiting: deque[tuple[int, Batch, Future[Outputs] | None]] = deque()
            for index, piece in enumerate(unit.pieces):
                for batch in read_batches(piece, readers):
                    lines += batch.lines
                    scores = scorers.submit(predict, batch.texts) if batch.texts else None
                    waiting.append((index, batch, scores))
                    if len(waiting) > cores:
                        _write(stream, *waiting.popleft())
                    reviews.advance(batch.lines)
                    size.advance(sum(map(len, batch.texts)) + _LINE_OVERHEAD * batch.lines)
            while waiting:
                _write(stream, *waiting.popleft())
        # The size so far is an estimate by the lines, the total one by the pieces.
        progress.report(BYTES, unit.bytes, source=str(unit.number))
        # Beam may retry a unit, or run it twice.
        target = unit_file(self._folder, self._digest, unit.number, lines)
        FileSystems.rename([path], [target])
        yield from ()


def _write(stream: Any, index: int, batch: Batch, scores: Future[Outputs] | None) -> None:
    """Write the lines of a batch, whose positions count from the beginning of its piece."""
    if scores:
        ids = {"id": batch.ids} if batch.ids else {}
        _write_lines(stream, index, position=batch.positions, **scores.result(), **ids)
    if batch.rejected:
        position, reason, detail = zip(*batch.rejected, strict=True)
        _write_lines(stream, index, position=position, reason=reason, detail=detail)


def _write_lines(stream: Any, index: int, **columns: Any) -> None:
    count = len(columns["position"])
    columns["piece"] = np.full(count, index)
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in SCHEMA
    ]
    stream.write_batch(pa.record_batch(arrays, schema=SCHEMA))
