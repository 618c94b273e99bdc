"""Describe each file of an input: its format, its encoding and its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.errors import InputError
from pipeline.data_check.attempts import Attempt
from pipeline.data_check.columns import example, roles, values_of
from pipeline.data_check.encodings import JSON_DOCUMENT, Converted, file_compression
from pipeline.data_check.found import IGNORED, FoundColumn, FoundFile
from pipeline.data_check.reading import Reading
from preprocessing.reading.choice import survey
from preprocessing.reading.columns import ROLES, Layout
from preprocessing.reading.files import SourceFile, relative_path
from preprocessing.reading.layouts import describe
from preprocessing.reading.look import read_table
from preprocessing.reading.records import ReadOptions

_FILES = 50
"""The maximum number of files whose columns are listed."""


def found_files(
    files: Sequence[SourceFile],
    converted: Converted,
    read: Sequence[SourceFile],
    attempt: Attempt | None,
    reading: Reading,
    options: ReadOptions,
) -> tuple[FoundFile, ...]:
    """Return the files of an input, with what was found in each.

    Args:
      files: the files.
      converted: the same files, of which some are converted.
      read: the files that were read.
      attempt: how they were read; None if none was.
      reading: the lines of a sample.
      options: the options for reading files.
    """
    layouts: Mapping[str, Layout] = {}
    if attempt:
        layouts = {file.path: layout for file, layout in zip(read, attempt.layouts, strict=False)}
    found = []
    for number, (file, used) in enumerate(zip(files, converted.files, strict=True)):
        layout = layouts.get(used.path)
        found.append(
            FoundFile(
                relative_path(converted.base, file.path),
                file.group,
                file.size,
                describe([layout])[0].partition(":")[0] if layout else "",
                _compression(file.path),
                _encoding(converted, file.path, layout),
                _columns(used.path, layout, options) if number < _FILES else (),
                reading.lines.get(used.path, 0),
                used.path in reading.lines
                and used.path not in reading.incomplete | converted.partial,
            )
        )
    return tuple(found)


def _columns(path: str, layout: Layout | None, options: ReadOptions) -> tuple[FoundColumn, ...]:
    if layout is not None and layout.columns is None:
        return ()
    try:
        table = read_table(path, options, layout)
    except InputError:
        return ()
    if table is None:
        return ()
    role_of: dict[str, str] = {}
    if layout and layout.columns:
        for columns in survey(table.records, layout).alternatives:
            others = dict(zip(ROLES, columns[:3], strict=True))
            role_of |= {name: f"{role} of other records" for name, role in roles(others).items()}
        role_of |= roles(dict(zip(ROLES, layout.columns[:3], strict=True)))
    return tuple(
        FoundColumn(name, role_of.get(name, IGNORED), example(values_of(table, name)))
        for name in table.names
    )


def _encoding(converted: Converted, path: str, layout: Layout | None) -> str:
    """Return the encoding of a file; empty if it is unknown, or the file is no text."""
    if layout and layout.format == "parquet":
        return ""
    name = converted.encodings.get(path, "UTF-8" if layout else "")
    return "UTF-8" if name == JSON_DOCUMENT else name


def _compression(path: str) -> str:
    try:
        return file_compression(path)
    except (InputError, OSError):
        return ""
