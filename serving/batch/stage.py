"""The Beam stage of a batch: read the lines of a unit, score the reviews, write the lines."""

from __future__ import annotations

import os
import uuid
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
from apache_beam.utils.shared import Shared

from core.progress import Progress
from preprocessing.reading.read import read_batches
from preprocessing.reading.records import Batch
from serving.batch import work
from serving.batch.work import Unit
from serving.predict_text import PredictText, load_predict_text

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
_BYTES_AT_ONCE = 4 << 20
"""Most bytes of text in one call of the model, to limit the memory for long reviews."""


class Scores(NamedTuple):
    """The sentiment of reviews: `probability` of being positive float32, `label` int64, [batch]."""

    probability: np.ndarray
    label: np.ndarray


def score(predict: PredictText, texts: Sequence[bytes]) -> Scores:
    """Return the sentiment of each text, in UTF-8. Several threads may call this function."""
    parts = [predict(part) for part in _parts(texts)]
    if not parts:
        return Scores(np.zeros(0, np.float32), np.zeros(0, np.int64))
    return Scores(*(np.concatenate([part[name] for part in parts]) for name in Scores._fields))


class ScoreUnit(beam.DoFn):
    """Unit -> files in the work folder, and no element."""

    def __init__(self, model_folder: str, work_folder: str):
        """Construct the function with the folder of a pushed model and that of `work`."""
        self._model_folder = model_folder
        self._work_folder = work_folder
        self._shared = Shared()

    def process(self, unit: Unit) -> Iterator[Any]:
        """Score every review of the unit and record the unit as finished.

        One thread reads and writes, others decompress, and others score. At most one batch more
        than there are threads is in memory.
        """
        predict = self._shared.acquire(
            lambda: load_predict_text(self._model_folder), self._model_folder
        )
        cores = len(os.sched_getaffinity(0))
        # Beam may retry a unit or run it twice, so each attempt has a file of its own. The record
        # of the unit names the file of one attempt.
        path = f"{self._work_folder}/{unit.number:06d}-{uuid.uuid4().hex}.arrow"
        done = work.Done(path, Counter(), [0] * len(unit.pieces))
        with (
            ThreadPoolExecutor(cores) as readers,
            ThreadPoolExecutor(cores) as scorers,
            work.create(path) as file,
            pa.ipc.new_stream(file, SCHEMA) as stream,
            Progress(REVIEWS, str(unit.number)) as reviews,
            Progress(BYTES, str(unit.number)) as size,
        ):
            waiting: deque[tuple[int, Batch, Future[Scores]]] = deque()
            for index, piece in enumerate(unit.pieces):
                for batch in read_batches(piece, readers):
                    done.lines[index] += batch.lines
                    done.rejected.update(line.reason for line in batch.rejected)
                    waiting.append((index, batch, scorers.submit(score, predict, batch.texts)))
                    if len(waiting) > cores:
                        _write(stream, *waiting.popleft())
                    reviews.advance(batch.lines)
                    size.advance(sum(map(len, batch.texts)) + _LINE_OVERHEAD * batch.lines)
            while waiting:
                _write(stream, *waiting.popleft())
        work.write_done(self._work_folder, unit.number, done)
        yield from ()


def _write(stream: Any, index: int, batch: Batch, scores: Future[Scores]) -> None:
    """Write the lines of a batch, whose positions count from the beginning of its piece."""
    probability, label = scores.result()
    if batch.texts:
        columns = {"position": batch.positions, "probability": probability, "label": label}
        _write_lines(stream, index, **columns, **({"id": batch.ids} if batch.ids else {}))
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


def _parts(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    start = size = 0
    for end, text in enumerate(texts):
        if size + len(text) > _BYTES_AT_ONCE and end > start:
            yield texts[start:end]
            start, size = end, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]
