"""Join the finished units, in the order of the input, into the output and the rejected file."""

from __future__ import annotations

import csv
import io
import itertools
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from preprocessing.labels import Labels
from preprocessing.reading.open_files import delete_file, open_raw
from preprocessing.reading.records import HARMLESS
from serving.batch import work
from serving.batch.work import ScoringUnit

_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("position", pa.int64()),
        ("probability", pa.float32()),
        ("label", pa.string()),
        ("id", pa.string()),
    ]
)
PREFIX = "probability:"
"""The beginning of the name of a column with the probabilities of one class, before its name."""
_REJECTED = ("file", "position", "reason", "detail")
_ROWS_AT_ONCE = 1 << 15
"""Smallest number of rows in a row group of a Parquet file, except for the last row group."""


def rejected_path(output: str) -> str:
    """Return the path or URL of the file with the rejected lines, which is next to the output."""
    return f"{output}.rejected.jsonl"


class FileCounts:
    """The counts of the lines of one input file.

    Attributes:
      reviews: the number of scored reviews.
      rejected: reason -> number of rejected lines.
      first: the detail of the first rejected line that may contain a review; empty if there is no
        such line.
    """

    def __init__(self) -> None:
        self.reviews = 0
        self.rejected: Counter[str] = Counter()
        self.first = ""

    @property
    def lines(self) -> int:
        """The number of all lines so far."""
        return self.reviews + self.rejected.total()


def publish(
    files: Mapping[str, ScoringUnit],
    folder: str,
    output: str,
    labels: Labels,
    *,
    has_id: bool,
    all_probabilities: bool,
) -> dict[str, FileCounts]:
    """Write the output and the rejected file; each file appears only when it is complete.

    Args:
      files: path of a file in the work folder -> its unit, in the order of the units.
      folder: the work folder.
      output: path or URL of the output, which ends in .csv, .jsonl or .parquet.
      labels: the classes of the model.
      has_id: whether the output has a column of ids.
      all_probabilities: whether the output has a column for each class, with its probability.

    Returns:
      Path of each input file that has a line -> its counts.

    Raises:
      OSError: a file cannot be read or written. Beam's file systems have errors of their own.
    """
    format = output.rpartition(".")[2].lower()
    schema = _SCHEMA if has_id else _SCHEMA.remove(len(_SCHEMA) - 1)
    if all_probabilities:
        for name in labels.names:
            schema = schema.append(pa.field(PREFIX + name, pa.float32()))
    # Another process may write the same output at the same time.
    scores, rejected = (f"{folder}/{uuid.uuid4().hex}" for _ in range(2))
    counts: defaultdict[str, FileCounts] = defaultdict(FileCounts)

    def tables(lines: Any) -> Iterator[pa.Table]:
        waiting: list[pa.RecordBatch] = []
        last = pa.RecordBatch.from_pylist([], schema)
        for batch in itertools.chain(_batches(files, lines, labels, schema, counts), [last]):
            waiting.append(batch)
            if sum(map(len, waiting)) < _ROWS_AT_ONCE and batch is not last:
                continue
            table = pa.Table.from_batches(waiting)
            waiting = []
            yield table

    with work.create(scores) as target, work.create(rejected) as lines:
        _write(format, schema, tables(lines), target)
    # The output appears last. Renaming does not replace a remote file.
    for source, path in ((rejected, rejected_path(output)), (scores, output)):
        if FileSystems.exists(path):
            delete_file(path)
        if path == output or any(file_counts.rejected for file_counts in counts.values()):
            FileSystems.rename([source], [path])
    return dict(counts)


def _batches(
    files: Mapping[str, ScoringUnit],
    rejected: Any,
    labels: Labels,
    schema: pa.Schema,
    counts: defaultdict[str, FileCounts],
) -> Iterator[pa.RecordBatch]:
    """Yield the reviews of finished units in record batches.

    Args:
      files: see `publish`.
      rejected: the file to which the rejected lines are written.
      labels: the classes of the model.
      schema: the columns of the record batches.
      counts: path of a file of the input -> its counts, which are updated.
    """
    for stored, unit in files.items():
        first: dict[int, int] = {}  # piece -> number of lines in the earlier pieces of its file
        for batch in _read(stored):
            piece, position, probability, label, reason, detail, id, scores = batch.columns
            number = piece[0].as_py()
            path = unit[number].path
            file_counts = counts[path]
            position = pa.array(position.to_numpy() + first.setdefault(number, file_counts.lines))
            if label.null_count:
                lines = zip(*map(pa.Array.to_pylist, (position, reason, detail)), strict=True)
                _write_rejected(rejected, path, lines, file_counts)
                continue
            file_counts.reviews += len(batch)
            columns = {
                "file": pa.repeat(path, len(batch)),
                "position": position,
                "probability": probability,
                "label": pa.array(labels.names).take(label),
                "id": id.fill_null(""),  # Files without columns have no ids.
            }
            if not scores.null_count:
                of_class = scores.flatten().to_numpy().reshape(-1, labels.number).T
                names = [PREFIX + name for name in labels.names]
                columns |= dict(zip(names, map(pa.array, of_class), strict=True))
            yield pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _read(stored: str) -> Iterator[pa.RecordBatch]:
    """Yield the record batches in the file of a finished unit, see `work.SCHEMA`."""
    with open_raw(stored) as file:
        yield from pa.ipc.open_stream(file)


def _write_rejected(
    rejected: Any, path: str, lines: Iterable[tuple[Any, ...]], counts: FileCounts
) -> None:
    """Write rejected lines of a file of the input, and count them.

    Args:
      rejected: the file to which they are written.
      path: the file of the input.
      lines: the position, the reason and the detail of each line.
      counts: the counts of the file, which are updated.
    """
    for position, reason, detail in lines:
        record = dict(zip(_REJECTED, (path, position, reason, detail), strict=True))
        rejected.write(json.dumps(record).encode() + b"\n")
        counts.rejected[reason] += 1
        if not counts.first and reason not in HARMLESS:
            counts.first = detail


def _write(format: str, schema: pa.Schema, tables: Iterable[pa.Table], file: Any) -> None:
    if format == "parquet":
        with pq.ParquetWriter(file, schema) as target:
            for table in tables:
                target.write_table(table)
    elif format == "jsonl":
        names = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in schema.names]
        line = "{" + ", ".join(f"{name}: %s" for name in names) + "}\n"
        for table in _parts(tables):
            rows = _rows(table, json.encoder.encode_basestring)
            file.write("".join([line % row for row in rows]).encode())
    else:
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(schema.names)
        for table in _parts(tables):
            writer.writerows(_rows(table, str))
        text.detach()  # The file belongs to the caller.


def _parts(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows in parts with at most SCORES_AT_ONCE values, which become Python's objects."""
    for table in tables:
        size = max(1, work.SCORES_AT_ONCE // table.num_columns)
        for start in range(0, len(table), size):
            yield table.slice(start, size)


def _rows(table: pa.Table, quote: Callable[[str], str]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a table, with `quote` applied to their texts."""
    columns: list[Any] = []
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        # pyarrow formats a float32 as the shortest decimal number with the same float32.
        column = table[name] if name == "position" else table[name].cast(pa.string())
        # NumPy makes Python's objects several times as fast as `to_pylist`.
        values = column.to_numpy().tolist()
        columns.append(map(quote, values) if kind == pa.string() else values)
    return zip(*columns, strict=True)
