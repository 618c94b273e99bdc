"""Parquet: files read one row group after the other; a position is the number of a row, from 1."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import InputError
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.columns import HEADERLESS, Layout
from preprocessing.reading.contents import ENCRYPTED
from preprocessing.reading.files import open_bytes
from preprocessing.reading.formats import add_row
from preprocessing.reading.labels import LabelReader
from preprocessing.reading.records import CORRUPT_ARCHIVE, INVALID_UTF8, Batch

_ROWS = 4096
"""Rows of a batch."""
_READ = 1 << 20
_NOT_UTF8 = b"\xff"  # replaces a value whose bytes cannot be read
_DAMAGED = (OSError, ValueError, pa.ArrowException)


def open_parquet(path: str, stream: BinaryIO) -> pq.ParquetFile:
    """Open a Parquet file whose bytes are `stream`.

    The index of its rows is at its end, so a truncated file is an InputError.
    """
    try:
        return pq.ParquetFile(_seekable(stream))
    # The RuntimeError is that of pyarrow-hotfix, which Beam imports beside an old pyarrow, for a
    # column of Python objects, whose reading could execute code.
    except (CorruptArchive, RuntimeError, *_DAMAGED) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{path} cannot be opened as a Parquet file: {reason}; it is damaged, incomplete "
            "(download it again) or of another format (set data.format)"
        ) from error


def refuse_encrypted(path: str, file: pq.ParquetFile, names: list[str]) -> None:
    """Raise InputError if one of the columns is encrypted; their names and types are not."""
    if not file.num_row_groups:
        return
    try:
        next(file.iter_batches(batch_size=1, row_groups=[0], columns=names), None)
    except _DAMAGED as error:  # of damage, the reader rejects the rows
        if "crypt" in str(error).lower():
            raise InputError(f"{path} is {ENCRYPTED}") from error


def _seekable(stream: BinaryIO) -> BinaryIO:
    if stream.seekable():
        return stream
    # Reading starts with the index at the end, so a compressed file is decompressed first.
    unpacked = tempfile.TemporaryFile()  # noqa: SIM115 - pyarrow reads it; closing it deletes it
    shutil.copyfileobj(stream, unpacked, _READ)
    return cast(BinaryIO, unpacked)


def labels(path: str, name: str) -> Iterator[Any]:
    """Yield the labels in the file, with duplicates. Damaged row groups are skipped."""
    with open_bytes(path) as stream:
        file = open_parquet(path, stream)
        for group in range(file.num_row_groups):
            with contextlib.suppress(*_DAMAGED):
                for batch in file.iter_batches(row_groups=[group], columns=[name]):
                    yield from _values(batch.column(batch.schema.names.index(name)).unique())


def read_parquet(path: str, stream: BinaryIO, layout: Layout) -> Iterator[Batch]:
    """Yield the rows of a Parquet file; each row of a damaged row group is rejected."""
    columns = layout.columns or HEADERLESS
    reader = LabelReader(layout)
    file = open_parquet(path, stream)
    position = 0
    for group in range(file.num_row_groups):
        end = position + file.metadata.row_group(group).num_rows
        damage = "it has fewer rows than the file's index lists"
        read = (*columns[:3], *columns.further)
        for values in _rows(file, group, [name for name in read if name]):
            if isinstance(values, str):
                damage = values
                break
            batch = Batch()
            missing = [None] * len(values[columns.text])
            for row in zip(*[values[name] if name else missing for name in read], strict=True):
                position += 1
                _add(batch, position, row, reader)
            yield batch
        # In a damaged row group pyarrow may also skip rows without an error.
        for start in range(position, end, _ROWS):
            batch = Batch()
            for row_number in range(start + 1, min(start + _ROWS, end) + 1):
                detail = f"damaged row group {group + 1}: {damage}"
                batch.reject(row_number, CORRUPT_ARCHIVE, detail)
            yield batch
        position = end


def _rows(
    file: pq.ParquetFile, group: int, names: list[str]
) -> Iterator[dict[str, list[Any]] | str]:
    """Yield the batches of a row group as columns of values, and the error if it is damaged."""
    try:
        for batch in file.iter_batches(batch_size=_ROWS, row_groups=[group], columns=names):
            present = batch.schema.names
            yield {name: _values(batch.column(present.index(name))) for name in names}
    except _DAMAGED as error:
        yield str(error)


def _values(column: pa.Array) -> list[Any]:
    try:
        return cast(list[Any], column.to_pylist())
    except (ValueError, OverflowError):  # a value that Python cannot represent, or bad UTF-8
        return [_value(item) for item in column]


def _value(item: pa.Scalar) -> Any:
    try:
        return item.as_py()
    except (ValueError, OverflowError):
        return item.as_buffer().to_pybytes() if hasattr(item, "as_buffer") else _NOT_UTF8


def _add(batch: Batch, position: int, fields: tuple[Any, ...], labels: LabelReader) -> None:
    try:
        # Other columns, such as that of ids, may have bytes that are no text.
        texts = [field.decode() if isinstance(field, bytes) else field for field in fields[:3]]
    except UnicodeDecodeError as error:
        batch.reject(position, INVALID_UTF8, error.object[error.start :])
    else:
        add_row(batch, position, [*texts, *fields[3:]], labels)
