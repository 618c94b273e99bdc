"""Join the finished units, in the order of the input, into the output and the rejected file."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from preprocessing.reading.files import delete_file
from serving.batch import work
from serving.batch.work import Unit
from serving.predictor import LABELS

FORMATS = ("csv", "jsonl", "parquet")
COLUMNS = ("file", "position", "probability", "label")
_ROWS_PER_GROUP = 1 << 17
_COPY_BYTES = 1 << 20


class Rows(NamedTuple):
    """Scored reviews of one file; `position` is the line, CSV record or row in the file, from 1."""

    file: str
    position: Sequence[int]
    probability: pa.Array
    label: Sequence[int]


class Writer(Protocol):
    """A writer of one format."""

    def write(self, rows: Rows) -> None: ...

    def close(self) -> None: ...


def rejected_path(output: str) -> str:
    """Return the path of the rejected lines of an output."""
    return f"{output}.rejected.jsonl"


def publish(units: Sequence[Unit], folder: str, names: Mapping[str, str], output: str) -> None:
    """Write the output and the rejected file; each file appears only when it is complete.

    Args:
      units: all units, which are finished.
      folder: the work folder.
      names: path of an input file -> its name in the output, where that differs.
      output: path or URL; its suffix is the format.
    """
    format = output.rpartition(".")[2].lower()
    scores, rejected = f"{folder}/output.{format}", f"{folder}/rejected.jsonl"
    with work.create(scores) as target, work.create(rejected) as lines:
        _join(units, folder, names, _writer(format, target), lines)
        has_rejected = bool(lines.tell())
        _sync(scores, target)
        _sync(rejected, lines)
    # Renaming does not replace a remote file.
    for path in (output, rejected_path(output)):
        if not work.is_local(path) and FileSystems.exists(path):
            delete_file(path)
    if has_rejected:
        _rename(rejected, rejected_path(output))
    elif FileSystems.exists(rejected_path(output)):
        delete_file(rejected_path(output))
    _rename(scores, output)


def print_to_standard_streams(
    units: Sequence[Unit], folder: str, names: Mapping[str, str], format: str
) -> None:
    """Write the output to standard output, and the rejected lines to standard error."""
    sys.stdout.flush()
    with open(f"{folder}/output", "wb") as target:
        _join(units, folder, names, _writer(format, target), sys.stderr.buffer)
    with open(f"{folder}/output", "rb") as source:
        shutil.copyfileobj(source, sys.stdout.buffer, _COPY_BYTES)
    sys.stdout.buffer.flush()


def _join(
    units: Sequence[Unit], folder: str, names: Mapping[str, str], writer: Writer, rejected: Any
) -> None:
    before: defaultdict[str, int] = defaultdict(int)  # file -> lines in its pieces so far
    for unit in units:
        done = work.read_done(folder, unit.number)
        files, first = [], []
        for piece, lines in zip(unit.pieces, done.lines, strict=True):
            files.append(names.get(piece.path, piece.path))
            first.append(before[piece.path])
            before[piece.path] += lines
        for batch in _read_scores(done.scores):
            # All rows of a batch are from one piece.
            index = batch.column(0)[0].as_py()
            positions = batch.column(1).to_numpy() + first[index]
            labels = batch.column(3).to_pylist()
            writer.write(Rows(files[index], positions.tolist(), batch.column(2), labels))
        if done.rejected:
            for line in _open(done.rejected):
                index, position, reason, detail = json.loads(line)
                record = {
                    "file": files[index],
                    "position": first[index] + position,
                    "reason": reason,
                    "detail": detail,
                }
                rejected.write(json.dumps(record).encode() + b"\n")
    writer.close()


def _open(path: str) -> Any:
    return FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)


def _read_scores(path: str) -> Iterator[pa.RecordBatch]:
    with _open(path) as file:
        yield from pa.ipc.open_stream(file)


class _Lines:
    """Lines of CSV or JSON, of which the parts between the values are constant."""

    _PARTS = {
        "csv": (",", ",", ",", "\r\n"),
        "jsonl": (', "position": ', ', "probability": ', ', "label": "', '"}\n'),
    }

    def __init__(self, format: str, file: Any):
        self._format, self._file = format, file
        if format == "csv":
            file.write(",".join(COLUMNS).encode() + b"\r\n")

    def write(self, rows: Rows) -> None:
        first, second, third, end = self._PARTS[self._format]
        start = self._quoted(rows.file) + first
        # The shortest decimal numbers that are read as the same float32.
        digits = rows.probability.cast(pa.string()).to_pylist()
        lines = [
            f"{start}{place}{second}{number}{third}{LABELS[label]}{end}"
            for place, number, label in zip(rows.position, digits, rows.label, strict=True)
        ]
        self._file.write("".join(lines).encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        pass

    def _quoted(self, name: str) -> str:
        if self._format == "jsonl":
            return f'{{"file": {json.dumps(name)}'
        quoted = io.StringIO()
        csv.writer(quoted).writerow([name, ""])
        return quoted.getvalue().removesuffix(",\r\n")


class _Parquet:
    def __init__(self, file: Any):
        # The file belongs to the caller, who synchronizes it with the disk.
        self._writer = pq.ParquetWriter(file, _SCHEMA)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, rows: Rows) -> None:
        name = rows.file.encode("utf-8", "replace").decode()
        columns = [
            pa.DictionaryArray.from_arrays(pa.array([0] * len(rows.label), pa.int32()), [name]),
            pa.array(rows.position, pa.int64()),
            rows.probability,
            pa.DictionaryArray.from_arrays(pa.array(rows.label, pa.int32()), list(LABELS)),
        ]
        self._waiting.append(pa.record_batch(columns, schema=_SCHEMA))
        self._rows += len(rows.label)
        if self._rows >= _ROWS_PER_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting).unify_dictionaries()
            self._writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
        self._waiting, self._rows = [], 0


_NAMES = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    zip(COLUMNS, (_NAMES, pa.int64(), pa.float32(), _NAMES), strict=True)  # type: ignore[arg-type]
)


def _writer(format: str, file: Any) -> Writer:
    return _Parquet(file) if format == "parquet" else _Lines(format, file)


def _sync(path: str, file: Any) -> None:
    if work.is_local(path):
        file.flush()
        os.fsync(file.fileno())


def _rename(source: str, target: str) -> None:
    if not work.is_local(target):
        FileSystems.rename([source], [target])
        return
    os.replace(source, target)
    folder = os.open(os.path.dirname(target), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
