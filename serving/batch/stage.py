"""The Beam stage of a batch: read the lines of a unit, score the reviews, write the lines."""

from __future__ import annotations

import os
import uuid
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.io.filesystems import FileSystems
from apache_beam.utils.shared import Shared

from core import progress
from core.progress import Progress
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import Batch
from serving.batch import work
from serving.batch.work import Unit
from serving.predict_text import Outputs, load_predict_text

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


class ScoreUnit(beam.DoFn):
    """Unit -> files in the work folder, and no element."""

    def __init__(self, model: str, folder: str, digest: str):
        """Construct the function with the folder of a pushed model, and the arguments of `work`."""
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
            work.create(path) as file,
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
        target = work.unit_file(self._folder, self._digest, unit.number, lines)
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
