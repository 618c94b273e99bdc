"""Join the finished units, in the order of the input, into the output and the rejected file."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.io.filesystems import FileSystems

from preprocessing.features import CLASSES
from preprocessing.reading.files import delete_file, open_raw
from serving.batch import work
from serving.batch.work import Unit

_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("position", pa.int64()),
        ("probability", pa.float32()),
        ("label", pa.string()),
        ("id", pa.string()),
    ]
)
_REJECTED = ("file", "position", "reason", "detail")
_ROWS_AT_ONCE = 1 << 15


def rejected_path(output: str) -> str:
    """Return the path of the rejected lines of an output."""
    return f"{output}.rejected.jsonl"


def publish(files: Mapping[str, Unit], folder: str, output: str, has_id: bool) -> Counter[str]:
    """Write the output and the rejected file; each file appears only when it is complete.

    Args:
      files: the files of all units, in the order of the units.
      folder: the work folder.
      output: path or URL; its suffix is the format.
      has_id: whether the output has the column `id`.

    Returns:
      Reason -> number of rejected lines.
    """
    format = output.rpartition(".")[2].lower()
    schema = _SCHEMA if has_id else _SCHEMA.remove(len(_SCHEMA) - 1)
    scores, rejected = f"{folder}/output.{format}", f"{folder}/rejected.jsonl"
    reasons: Counter[str] = Counter()
    with work.create(scores) as target, work.create(rejected) as lines:
        tables = _tables(_batches(files, lines, reasons))
        _write(format, schema, (table.select(schema.names) for table in tables), target)
        for file in (target, lines) if work.is_local(output) else ():
            file.flush()
            os.fsync(file.fileno())
    # The output appears last. Renaming does not replace a remote file.
    for source, path in ((rejected, rejected_path(output)), (scores, output)):
        is_wanted = path == output or bool(reasons)
        if FileSystems.exists(path) and not (is_wanted and work.is_local(path)):
            delete_file(path)
        if is_wanted:
            FileSystems.rename([source], [path])
    return reasons


def _tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the batches in tables of many rows."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += len(batch)
        if rows >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting, _SCHEMA)
            waiting, rows = [], 0
    yield pa.Table.from_batches(waiting, _SCHEMA)


def _batches(
    files: Mapping[str, Unit], rejected: Any, reasons: Counter[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the reviews; write the rejected lines and count their reasons."""
    lines: Counter[str] = Counter()  # file of the input -> lines so far
    for stored, unit in files.items():
        first: dict[int, int] = {}  # piece -> lines in the earlier pieces of its file
        with open_raw(stored) as file:
            for batch in pa.ipc.open_stream(file):
                piece, position, probability, label, reason, detail, id = batch.columns
                number = piece[0].as_py()
                path = unit.pieces[number].path
                position = pa.array(position.to_numpy() + first.setdefault(number, lines[path]))
                lines[path] += len(batch)
                # The bytes of a name need not be UTF-8.
                name = os.fsencode(path).decode("utf-8", "backslashreplace")
                if label.null_count:
                    rows = map(pa.Array.to_pylist, (position, reason, detail))
                    for line in zip(*rows, strict=True):
                        record = dict(zip(_REJECTED, (name, *line), strict=True))
                        rejected.write(json.dumps(record).encode() + b"\n")
                        reasons[record["reason"]] += 1
                    continue
                columns = [
                    pa.repeat(name, len(batch)),
                    position,
                    probability,
                    pa.array(CLASSES).take(label),
                    id.fill_null(""),  # Files without columns have no ids.
                ]
                yield pa.record_batch(columns, schema=_SCHEMA)


def _write(format: str, schema: pa.Schema, tables: Iterable[pa.Table], file: Any) -> None:
    if format == "parquet":
        with pq.ParquetWriter(file, schema) as target:
            for table in tables:
                target.write_table(table)
    elif format == "jsonl":
        line = "{" + ", ".join(f'"{name}": %s' for name in schema.names) + "}\n"
        for table in tables:
            rows = _rows(table, json.encoder.encode_basestring)
            file.write("".join([line % row for row in rows]).encode())
    else:
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(schema.names)
        for table in tables:
            writer.writerows(_rows(table, str))
        text.detach()  # The file belongs to the caller.


def _rows(table: pa.Table, quote: Callable[[str], str]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a table, with `quote` applied to their texts."""
    columns = []
    for name in table.column_names:
        # A float32 has the shortest decimal number that is read as the same float32.
        column = table[name] if name == "position" else table[name].cast(pa.string())
        # NumPy makes Python's objects several times as fast as `to_pylist`.
        values = column.to_numpy().tolist()
        columns.append(values if name in ("position", "probability") else map(quote, values))
    return zip(*columns, strict=True)
