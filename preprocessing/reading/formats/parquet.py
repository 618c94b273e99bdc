"""Parquet, read one row group after the other. The position of a record is its row, from 1."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import InputError
from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.choice import Chooser
from preprocessing.reading.columns import Layout
from preprocessing.reading.contents import ENCRYPTED_PARQUET, PARQUET_MAGIC
from preprocessing.reading.formats import RowReader
from preprocessing.reading.labels import has_stars
from preprocessing.reading.open_files import open_bytes
from preprocessing.reading.records import CORRUPT_ARCHIVE, INVALID_UTF8, Batch, has_text
from preprocessing.reading.values import is_filled

# An old pyarrow executes code that a column contains (CVE-2023-47248). Beam imports its fix too,
# but `data check` does not import Beam. A new pyarrow requires no fix.
with contextlib.suppress(ImportError):
    import pyarrow_hotfix  # noqa: F401

_ROWS = 4096
"""Number of rows in a batch."""
_READ = 1 << 20
_HUGGING_FACE = b"huggingface"
_NOT_UTF8 = b"\xff"  # replaces a value whose bytes cannot be read
_LENGTH_BYTES = 4
"""Bytes before the last PARQUET_MAGIC of a file, with the length of the index."""
_MOST_AFTER_ROWS = 1 << 26
"""Maximum bytes between the rows of a file and its index, such as those of Bloom filters, in which
the beginning of another file is looked for."""
_NEW_TYPE = "Unrecognized type"
"""A part of the message about a type such as `string_view`, which newer programs write."""
_DAMAGED = (OSError, ValueError, pa.ArrowException)


def open_parquet(path: str, stream: BinaryIO) -> pq.ParquetFile:
    """Open a Parquet file; return its reader.

    Args:
      path: the path of the file, for the error.
      stream: the content of the file. A stream that is not seekable is copied to a temporary file.

    Raises:
      InputError: the file is not a Parquet file, has a type that this pyarrow does not know, or is
        damaged or truncated. A truncated file has no index, because the index is at the end.
    """
    try:
        return pq.ParquetFile(_seekable(stream))
    # pyarrow-hotfix raises the RuntimeError for a column of Python objects.
    except (CorruptArchive, RuntimeError, *_DAMAGED) as error:
        reason = str(error).partition("\n")[0]
        if _NEW_TYPE in reason:
            raise InputError(
                f"{path} has a type of a newer version of Arrow than that of pyarrow "
                f"{pa.__version__} ({reason}): write it again with the pyarrow that wrote it, such "
                'as with `python3 -c "import pyarrow.parquet as pq; pq.write_table(pq.read_table('
                "'FILE'), 'NEW_FILE', store_schema=False)\"`, and read only the new file"
            ) from error
        raise InputError(
            f"{path} cannot be opened as a Parquet file: {reason}; it is damaged, incomplete "
            "(download it again) or of another format (set data.format)"
        ) from error


def refuse_encrypted(path: str, file: pq.ParquetFile, names: list[str]) -> None:
    """Check that some columns are not encrypted.

    Without the key, only the names and types of encrypted columns can be read.

    Args:
      path: the path of the file, for the error.
      file: the file.
      names: the names of the columns.

    Raises:
      InputError: one of the columns is encrypted.
    """
    if _is_encrypted(file, names):
        raise InputError(f"{path} is {ENCRYPTED_PARQUET.name}: {ENCRYPTED_PARQUET.remedy}")


def refuse_joined(path: str, stream: BinaryIO, file: pq.ParquetFile) -> None:
    """Check that a file is not several files, one after the other, as `cat` writes them.

    The index at the end is that of the last of them, and pyarrow returns as many rows as it lists,
    without an error. The positions in the index count from the beginning of the last file. So the
    space between its rows and its index seems to contain the files before it.

    Args:
      path: the path of the file, for the error.
      stream: the content of the file. One that is not seekable, as of an archive, is not checked.
      file: the file.

    Raises:
      InputError: the file is several files.
    """
    if not stream.seekable():
        return
    tail = len(PARQUET_MAGIC) + _LENGTH_BYTES
    size = stream.seek(0, os.SEEK_END)
    stream.seek(size - tail)
    index = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    space = size - tail - index - _end_of_rows(file)
    if space < len(PARQUET_MAGIC):
        return
    start = max(0, space - _MOST_AFTER_ROWS)
    stream.seek(start)
    if 2 * PARQUET_MAGIC in stream.read(space + len(PARQUET_MAGIC) - start):
        raise InputError(
            f"{path} is several Parquet files, one after the other, of which only the last "
            "one can be read: read the files from which it was made in its place"
        )


def _end_of_rows(file: pq.ParquetFile) -> int:
    """Return the end of the columns in the last row group, in bytes from the start of the file."""
    if not file.num_row_groups:
        return len(PARQUET_MAGIC)
    group = file.metadata.row_group(file.num_row_groups - 1)
    encrypted = _encrypted_columns(file)
    ends = [len(PARQUET_MAGIC)]
    for index in range(group.num_columns):
        # The position of an encrypted column crashes pyarrow 10, like its statistics.
        if file.schema.column(index).path.partition(".")[0] not in encrypted:
            column = group.column(index)
            first = column.dictionary_page_offset if column.has_dictionary_page else 0
            ends.append((first or column.data_page_offset) + column.total_compressed_size)
    return max(ends)


def class_names(file: pq.ParquetFile, column: str) -> tuple[str, ...]:
    """Return the names of the numbers in a column of classes, which Hugging Face's datasets write.

    The metadata of the file contains them. They are empty for any other column, and for names
    that are missing or not different.

    Args:
      file: the file.
      column: the name of the column.
    """
    try:
        stored = json.loads((file.schema_arrow.metadata or {})[_HUGGING_FACE])
        names = stored["info"]["features"][column]["names"]
        found = tuple(name for name in names if isinstance(name, str) and name.strip())
    except (KeyError, TypeError, ValueError):
        return ()
    return found if len(set(found)) == len(names) else ()


def column_kinds(file: pq.ParquetFile) -> dict[str, str]:
    """Return name -> what each value is, for the columns of lists, objects and durations.

    Args:
      file: the file.
    """
    found = {}
    for field in file.schema_arrow:
        if pa.types.is_struct(field.type):
            found[field.name] = f"an object ({field.type})"
        elif pa.types.is_nested(field.type):
            found[field.name] = f"a list ({field.type})"
        elif pa.types.is_duration(field.type):
            found[field.name] = f"a duration ({field.type})"
    return found


def _encrypted_columns(file: pq.ParquetFile) -> frozenset[str]:
    """Return the columns that cannot be decrypted. Reading their statistics crashes pyarrow 10."""
    names = file.schema_arrow.names
    if not _is_encrypted(file, names):
        return frozenset()
    return frozenset(name for name in names if _is_encrypted(file, [name]))


def _is_encrypted(file: pq.ParquetFile, names: list[str]) -> bool:
    """Return whether one of the columns is encrypted; a damaged column is not."""
    if not file.num_row_groups:
        return False
    try:
        next(file.iter_batches(batch_size=1, row_groups=[0], columns=names), None)
    except _DAMAGED as error:
        return "crypt" in str(error).lower()
    return False


def _seekable(stream: BinaryIO) -> BinaryIO:
    if stream.seekable():
        return stream
    # Reading starts with the index at the end, so a compressed file is decompressed first.
    unpacked = tempfile.TemporaryFile()  # noqa: SIM115 - pyarrow reads it; closing it deletes it
    shutil.copyfileobj(stream, unpacked, _READ)
    return cast(BinaryIO, unpacked)


def first_rows(file: pq.ParquetFile, most: int) -> list[dict[str, Any]]:
    """Return the first rows of a file, column -> value; none if they are damaged.

    Args:
      file: the file.
      most: the maximum number of rows.
    """
    with contextlib.suppress(*_DAMAGED):
        for batch in file.iter_batches(batch_size=most):
            columns = map(_values, batch.columns)
            return [
                dict(zip(batch.schema.names, row, strict=True))
                for row in zip(*columns, strict=True)
            ]
    return []


def labels(path: str, layout: Layout) -> dict[str, set[Any]]:
    """Return column -> labels, for each column that contains labels.

    If all of them have the name of a rating, only the least and the greatest label of each row
    group are returned, because the index of the file contains them. If a row has several labels,
    only the first one counts. Damaged row groups are skipped.

    Args:
      path: path or URL of the file.
      layout: the layout of the file.

    Raises:
      InputError: the file cannot be opened.
    """
    with open_bytes(path) as stream:
        file = open_parquet(path, stream)
        kinds = column_kinds(file)
        present = [name for name in file.schema_arrow.names if name not in kinds]
        names = Chooser(layout).labels(present)
        found: dict[str, set[Any]] = {name: set() for name in names}
        groups = range(file.num_row_groups)
        encrypted = _encrypted_columns(file)
        if all(map(has_stars, names)):
            for name in names:
                for group in groups:
                    found[name].update(_Statistics(file, group, encrypted).limits(name))
            return found
        for group in groups:
            with contextlib.suppress(*_DAMAGED):
                for batch in file.iter_batches(row_groups=[group], columns=names):
                    for name, value in _first_labels(batch, names):
                        found[name].add(value)
    return found


def _first_labels(batch: pa.RecordBatch, names: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield (column, label) of the first label of each row; for one column, each label once."""
    present = batch.schema.names
    columns = [batch.column(present.index(name)) for name in names]
    if len(columns) == 1:
        yield from ((names[0], value) for value in _values(columns[0].unique()))
        return
    for row in zip(*map(_values, columns), strict=True):
        yield from [pair for pair in zip(names, row, strict=True) if is_filled(pair[1])][:1]


class _Statistics:
    """The statistics of the columns of a row group, from the index of the file."""

    def __init__(self, file: pq.ParquetFile, group: int, encrypted: frozenset[str]) -> None:
        metadata = file.metadata.row_group(group)
        # The path of a column in a struct, such as `a.b`, begins with the name of the struct.
        structs = tuple(f"{name}." for name in encrypted)
        paths = [file.schema.column(index).path for index in range(metadata.num_columns)]
        self._columns = {
            path: metadata.column(index).statistics
            for index, path in enumerate(paths)
            if path not in encrypted and not path.startswith(structs)
        }
        self._rows = metadata.num_rows

    def limits(self, name: str) -> list[Any]:
        """Return the least and the greatest value of a column, if they are known."""
        found = self._columns.get(name)
        if found is None or not found.has_min_max:
            return []
        with contextlib.suppress(ValueError, OverflowError):  # a text that is not UTF-8
            return [found.min, found.max]
        return []

    def is_full(self, name: str) -> bool:
        """Return whether a column is known to be filled in every row."""
        found = self._columns.get(name)
        if found is None or not found.has_null_count or found.null_count:
            return False
        limits = self.limits(name)
        return bool(limits) and is_filled(limits[0])

    def is_empty(self, name: str) -> bool:
        """Return whether a column is known to be filled in no row."""
        found = self._columns.get(name)
        if found is not None and found.has_null_count and found.null_count == self._rows:
            return True
        limits = self.limits(name)
        return bool(limits) and limits[0] == limits[1] and not is_filled(limits[0])


class _Others:
    """The columns of a row group that the layout does not contain.

    Attributes:
      texts: the columns that contain texts.
      read: the columns whose values are needed for a record without a text or a label.
      full: the columns that are not read, because they are filled in every row.
    """

    def __init__(
        self, file: pq.ParquetFile, group: int, encrypted: frozenset[str], reader: RowReader
    ) -> None:
        schema, statistics = file.schema_arrow, _Statistics(file, group, encrypted)
        names = [name for name in schema.names if name not in encrypted]
        self.texts = reader.chooser.texts(names)
        # If no row has a text, a column that is filled in every row may contain the texts.
        has_text = not all(map(statistics.is_empty, self.texts))
        known = set(reader.chooser.names(names))
        unknown = [
            name
            for name in names
            if name not in known
            and _is_text(schema.field(schema.names.index(name)).type)
            and not statistics.is_empty(name)
            and not (has_text and statistics.is_full(name))
        ]
        self.read = [
            name
            for name in (*known, *unknown)
            if name not in reader.names and not statistics.is_empty(name)
        ]
        unread = set(names).difference(known, unknown)
        self.full = dict.fromkeys(filter(statistics.is_full, unread), True)

    def notice(self, chooser: Chooser, values: Mapping[str, list[Any]]) -> None:
        """Add to `chooser.beside` the columns that are filled in a row with a text.

        Args:
          chooser: the chooser of the reader.
          values: column -> values of some rows.
        """
        texts = [values[name] for name in self.texts if name in values]
        chooser.beside.update(self.full)
        for name in self.read:
            rows = zip(values[name], *texts, strict=True)
            if name not in chooser.beside and any(
                is_filled(value) and any(map(has_text, row_texts)) for value, *row_texts in rows
            ):
                chooser.beside.add(name)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def read_parquet(path: str, stream: BinaryIO, layout: Layout) -> Iterator[Batch]:
    """Yield the rows of a Parquet file; lost rows of a damaged row group are rejected.

    Args:
      path: the path of the file, for errors.
      stream: the content of the file.
      layout: the layout of the file.

    Raises:
      InputError: the file cannot be opened.
    """
    file = open_parquet(path, stream)
    reader = RowReader(layout)
    encrypted = _encrypted_columns(file)
    position = 0
    for group in range(file.num_row_groups):
        end = position + file.metadata.row_group(group).num_rows
        damage = "it has fewer rows than the file's index lists"
        others = _Others(file, group, encrypted, reader)
        usual = list(dict.fromkeys(name for name in reader.names if name))
        for values in _rows(file, group, [*usual, *others.read]):
            if isinstance(values, str):
                damage = values
                break
            batch = _batch(position, values, others, reader)
            position += batch.lines
            yield batch
        # In a damaged row group pyarrow may also skip rows without an error.
        for start in range(position, end, _ROWS):
            batch = Batch()
            for row_number in range(start + 1, min(start + _ROWS, end) + 1):
                detail = f"damaged row group {group + 1}: {damage}"
                batch.reject(row_number, CORRUPT_ARCHIVE, detail)
            yield batch
        position = end


def _batch(
    before: int, values: Mapping[str, list[Any]], others: _Others, reader: RowReader
) -> Batch:
    """Return the batch of some rows.

    Args:
      before: number of rows of the file before these rows.
      values: column -> values of these rows.
      others: the columns that the layout does not contain.
      reader: the reader of the records.
    """
    batch = Batch()
    missing = [None] * len(next(iter(values.values())))
    rows = zip(*[values[name] if name else missing for name in reader.names], strict=True)
    as_stored = set(reader.names[3:]).difference(reader.names[:3])
    is_noticed = False
    for index, row in enumerate(rows):
        position = before + index + 1
        try:
            # Other columns, such as a column of ids, may contain bytes that are not text.
            decoded = [*map(_decoded, row[:3]), *row[3:]]
            if reader.add_usual(batch, position, decoded, values):
                continue
            record = {
                name: column[index] if name in as_stored else _decoded(column[index])
                for name, column in values.items()
            }
        except UnicodeDecodeError as error:
            batch.reject(position, INVALID_UTF8, error.object[error.start :])
            continue
        if not is_noticed:
            others.notice(reader.chooser, values)
            is_noticed = True
        reader.add(batch, position, record | others.full)
    return batch


def _decoded(value: Any) -> Any:
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _rows(
    file: pq.ParquetFile, group: int, names: list[str]
) -> Iterator[dict[str, list[Any]] | str]:
    """Yield column -> values for each batch of a row group, and the error if it is damaged."""
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
        if hasattr(item, "as_buffer"):
            return item.as_buffer().to_pybytes()
        return getattr(item, "value", _NOT_UTF8)  # the number of a timestamp beyond the year 9999
