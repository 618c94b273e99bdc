"""The units of a batch, and the Beam stage that scores them.

A killed run resumes from the work folder, a hidden folder next to the output. This folder contains
a file with the lines of each finished unit. The name of the file is a digest of everything that
determines the lines, and the number of the unit. Incomplete files have other names. The process
that scores holds a lock in the folder.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.utils.shared import Shared

from core import progress
from core.errors import InputError
from core.files import lock_file
from core.machine import cores
from core.processes import keep_freed_memory
from core.progress import Progress
from core.storage import is_url
from preprocessing.labels import Labels
from preprocessing.reading.open_files import delete_file
from preprocessing.reading.pieces import Piece
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import Batch
from serving.predict_text import PredictText, load_predict_text

_BYTES_PER_UNIT = 64 << 20
"""Size of a unit, in estimated bytes of text. After a kill only unfinished units are repeated."""
SCORES_AT_ONCE = 1 << 20
"""Maximum number of probabilities of one call of the model, and of the values that become text at
once. It limits the memory that many classes require."""
SCHEMA = pa.schema(
    [
        ("piece", pa.int32()),
        ("position", pa.int64()),
        ("probability", pa.float32()),
        ("label", pa.int32()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("id", pa.string()),
        ("probabilities", pa.list_(pa.float32())),
    ]
)
"""Columns of the lines of a unit: the index of the piece in the unit, and the position in the
piece. A review also has its prediction and id, and a rejected line the reason and the detail. The
lines of a record batch belong to one piece, and are either all reviews or all rejected. The
probabilities of all classes are null unless they are required."""

_Columns = dict[str, Any]
"""Name of a column of `SCHEMA` -> its values, an array of NumPy or pyarrow."""
ScoringUnit = tuple[Piece, ...]
"""Consecutive pieces of the input that are scored and kept together."""


def text_size(unit: ScoringUnit) -> int:
    """Return the size of the text of a unit in bytes, estimated from the sizes of its files."""
    return sum(piece.unpacked for piece in unit)


def divide_into_units(pieces: Iterable[Piece]) -> list[ScoringUnit]:
    """Return units of whole pieces, in the order of the pieces.

    A unit with at least a quarter of the full size ends with its file. So the predictions for a
    scored file are kept after a kill. Many small files share a unit.

    Args:
      pieces: the pieces of all files. A file that cannot be cut is a single piece.
    """
    units: list[list[Piece]] = []
    size = 0
    for piece in pieces:
        is_full = size + piece.unpacked > _BYTES_PER_UNIT
        is_next_file = bool(units) and units[-1][-1].path != piece.path
        if not units or is_full or (is_next_file and size >= _BYTES_PER_UNIT // 4):
            units.append([])
            size = 0
        units[-1].append(piece)
        size += piece.unpacked
    return [tuple(unit) for unit in units]


def create(path: str) -> Any:
    """Open a file for writing without compression; return the stream.

    By default Beam infers a compression from the name of the file.

    Args:
      path: path or URL of the file.

    Raises:
      OSError: the file cannot be written. Remote file systems have errors of their own.
    """
    return FileSystems.create(path, compression_type=CompressionTypes.UNCOMPRESSED)


@contextlib.contextmanager
def locked(folder: str, target: str) -> Iterator[None]:
    """Create the work folder, and hold its lock in this context; one at a URL has no lock.

    Args:
      folder: path or URL of the folder.
      target: the output, for the error.

    Raises:
      InputError: another process scores files for the same output, or the folder cannot be created
        or locked.
    """
    if is_url(folder):
        yield
        return
    try:
        descriptor = _lock(folder)
    except BlockingIOError:
        raise InputError(
            f"--output: another process writes {target}; repeat the command after its end, or name "
            "another file"
        ) from None
    except OSError as error:
        raise InputError(
            f"--output: {folder} cannot be created or locked: {error.strerror}"
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: str) -> int:
    """Create the work folder and lock it; return the descriptor of the lock.

    Raises:
      OSError: see `lock_file`.
    """
    path = f"{folder}/.lock"
    while True:
        os.makedirs(folder, exist_ok=True)
        # A process that has finished removes its folder, in which this one may have locked a file.
        with contextlib.suppress(FileNotFoundError):
            descriptor = lock_file(path)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
            os.close(descriptor)


def remove(folder: str) -> None:
    """Delete the work folder. A local file that cannot be deleted is left.

    Args:
      folder: path or URL of the folder.

    Raises:
      Exception: a remote file cannot be deleted; Beam's file systems have errors of their own.
    """
    if is_url(folder):
        for file in FileSystems.match([f"{glob.escape(folder)}/*"])[0].metadata_list:
            delete_file(file.path)
    else:
        shutil.rmtree(folder, ignore_errors=True)


class ScoreUnit(beam.DoFn):
    """A stage that writes the lines of each unit to a file, and has no output elements."""

    def __init__(self, model: str, labels: Labels, all_probabilities: bool):
        """Construct the stage.

        Args:
          model: folder or URL of a pushed model.
          labels: the classes of the model.
          all_probabilities: whether the lines contain the probabilities of all classes.
        """
        self._model = model
        self._labels = labels
        self._all_probabilities = all_probabilities
        self._shared = Shared()

    def setup(self) -> None:
        """Prepare the process, once for each copy of the stage."""
        keep_freed_memory()

    def process(self, element: tuple[str, ScoringUnit]) -> Iterator[Any]:
        """Score every review of a unit; yield nothing.

        One thread reads and writes, others decompress, and others score. The memory contains at
        most one batch more than the machine has cores.

        Args:
          element: the path of the file to write, and the unit.

        Raises:
          UserError: the model cannot be loaded.
          InputError: a file of the unit cannot be read.
          OSError: the file with the lines cannot be written.
          tensorflow.errors.OpError: the model failed.
        """
        target, unit = element
        predict = self._shared.acquire(lambda: load_predict_text(self._model), self._model)
        threads = cores()
        # Beam may retry a unit, or run it twice.
        path = f"{target}.{uuid.uuid4().hex}"
        with (
            ThreadPoolExecutor(threads) as readers,
            ThreadPoolExecutor(threads) as scorers,
            create(path) as file,
            pa.ipc.new_stream(file, SCHEMA) as stream,
            Progress(progress.REVIEWS, target) as reviews,
            Progress(progress.BYTES, target) as size,
        ):
            waiting: deque[tuple[int, Batch, Future[_Columns] | None]] = deque()
            for index, piece in enumerate(unit):
                for batch in self._batches(piece, readers):
                    scores = None
                    if batch.texts:
                        scores = scorers.submit(self._score, predict, batch.texts)
                    waiting.append((index, batch, scores))
                    if len(waiting) > threads:
                        _write(stream, *waiting.popleft())
                    reviews.advance(batch.lines)
                    size.advance(sum(map(len, batch.texts)))
            while waiting:
                _write(stream, *waiting.popleft())
        # The reported sizes are those of the texts, but the total was estimated from the pieces.
        progress.report(progress.BYTES, text_size(unit), source=target)
        FileSystems.rename([path], [target])
        yield from ()

    def _batches(self, piece: Piece, readers: ThreadPoolExecutor) -> Iterator[Batch]:
        """Yield the lines of a piece in batches with at most SCORES_AT_ONCE probabilities."""
        size = max(1, SCORES_AT_ONCE // self._labels.logits)
        for batch in read_batches(piece, readers):
            if len(batch.texts) <= size:
                yield batch
                continue
            yield replace(
                batch,
                positions=batch.positions[:size],
                labels=batch.labels[:size],
                texts=batch.texts[:size],
                further=batch.further[:size],
                ids=batch.ids[:size],
            )
            for start in range(size, len(batch.texts), size):
                here = slice(start, start + size)
                yield Batch(
                    batch.positions[here],
                    batch.labels[here],
                    batch.texts[here],
                    batch.further[here],
                    batch.ids[here],
                )

    def _score(self, predict: PredictText, texts: Sequence[bytes]) -> _Columns:
        """Return the columns of `SCHEMA` with the predictions for texts."""
        outputs = predict(texts)
        labels, predicted = self._labels, outputs["label"]
        scores = outputs[labels.scores_name]
        columns: _Columns = {"probability": labels.shown(scores, predicted), "label": predicted}
        if self._all_probabilities:
            of_classes = pa.array(labels.by_class(scores).ravel())
            ends = pa.array(np.arange(len(texts) + 1) * labels.number, pa.int32())
            columns["probabilities"] = pa.ListArray.from_arrays(ends, of_classes)
        return columns


def _write(stream: Any, index: int, batch: Batch, scores: Future[_Columns] | None) -> None:
    """Write the lines of a batch to a file of a unit.

    Args:
      stream: the writer of the file, for record batches of `SCHEMA`.
      index: the index of the piece in the unit.
      batch: lines of the piece; their positions count from its beginning.
      scores: the predictions of the reviews in `batch`; None without reviews.
    """
    if scores:
        ids = {"id": batch.ids} if batch.ids else {}
        _write_lines(stream, index, position=batch.positions, **scores.result(), **ids)
    if batch.rejected:
        position, reason, detail = zip(*batch.rejected, strict=True)
        _write_lines(stream, index, position=position, reason=reason, detail=detail)


def _write_lines(stream: Any, index: int, **columns: Any) -> None:
    count = len(columns["position"])
    columns["piece"] = np.full(count, index)
    arrays = [_array(columns.get(field.name), field.type, count) for field in SCHEMA]
    stream.write_batch(pa.record_batch(arrays, schema=SCHEMA))


def _array(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        return pa.nulls(count, kind)
    return values if isinstance(values, pa.Array) else pa.array(values, kind)
