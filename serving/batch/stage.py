"""The Beam stage of a batch: read the lines of a unit, score the reviews, write the scores."""

from __future__ import annotations

import contextlib
import json
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
from preprocessing.reading.records import Batch, Rejected
from serving.batch import work
from serving.batch.work import Unit
from serving.predict_text import PredictText, load_predict_text

SCHEMA = pa.schema(
    [
        ("piece", pa.int32()),
        ("position", pa.int64()),
        ("probability", pa.float32()),
        ("label", pa.int8()),
    ]
)
"""Columns of the scores of a unit: the index of a piece, the position in it, the prediction."""
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
        # Beam may retry a unit or run it twice, so each attempt has files of its own. The record of
        # the unit names the files of one attempt.
        name = f"{self._work_folder}/{unit.number:06d}-{uuid.uuid4().hex}"
        lines = [0] * len(unit.pieces)
        with (
            ThreadPoolExecutor(cores) as readers,
            ThreadPoolExecutor(cores) as scorers,
            _Files(name) as files,
            Progress(REVIEWS, str(unit.number)) as reviews,
            Progress(BYTES, str(unit.number)) as size,
        ):
            waiting: deque[tuple[int, Batch, Future[Scores]]] = deque()
            for index, batch in _batches(unit, readers):
                lines[index] += batch.lines
                waiting.append((index, batch, scorers.submit(score, predict, batch.texts)))
                if len(waiting) > cores:
                    files.write(waiting[0][0], waiting[0][1], waiting[0][2].result())
                    waiting.popleft()
                reviews.advance(batch.lines)
                size.advance(sum(map(len, batch.texts)) + _LINE_OVERHEAD * batch.lines)
            for index, batch, future in waiting:
                files.write(index, batch, future.result())
        work.write_done(self._work_folder, unit.number, files.done(lines))
        yield from ()


def _batches(unit: Unit, pool: ThreadPoolExecutor) -> Iterator[tuple[int, Batch]]:
    for index, piece in enumerate(unit.pieces):
        for batch in read_batches(piece, pool):
            yield index, batch


def _parts(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    start = size = 0
    for end, text in enumerate(texts):
        if size + len(text) > _BYTES_AT_ONCE and end > start:
            yield texts[start:end]
            start, size = end, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]


class _Files(contextlib.AbstractContextManager["_Files"]):
    """The files of one attempt at a unit; one for rejected lines exists only if there are any."""

    def __init__(self, name: str):
        self._name = name
        self._scores: Any = work.create(f"{name}.arrow")
        self._stream = pa.ipc.new_stream(self._scores, SCHEMA)
        self._rejected: Any = None
        self._reviews = 0
        self._counts: Counter[str] = Counter()

    def write(self, index: int, batch: Batch, scores: Scores) -> None:
        """Write the lines of a batch, whose positions count from the beginning of its piece."""
        if batch.texts:
            columns = [
                np.full(len(batch.texts), index, np.int32),
                np.array(batch.positions, np.int64),
                scores.probability,
                scores.label.astype(np.int8),
            ]
            self._stream.write_batch(pa.record_batch(list(map(pa.array, columns)), schema=SCHEMA))
            self._reviews += len(batch.texts)
        for line in batch.rejected:
            self._reject(index, line)

    def done(self, lines: list[int]) -> work.Done:
        """Return the record of the closed files."""
        rejected = f"{self._name}.jsonl" if self._rejected else None
        counts = dict(self._counts)
        return work.Done(f"{self._name}.arrow", rejected, self._reviews, counts, lines)

    def _reject(self, index: int, line: Rejected) -> None:
        if self._rejected is None:
            self._rejected = work.create(f"{self._name}.jsonl")
        self._counts[line.reason] += 1
        self._rejected.write(json.dumps([index, *line]).encode() + b"\n")

    def __exit__(self, *error: object) -> None:
        self._stream.close()
        self._scores.close()
        if self._rejected is not None:
            self._rejected.close()
