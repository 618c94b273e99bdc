"""Describe each file of an input: its format, its encoding and its columns."""

from __future__ import annotations

import os
from collections.abc import Sequence

from core.errors import InputError
from core.storage import is_url
from pipeline.data_check.attempts import Attempt
from pipeline.data_check.columns import example, values_of
from pipeline.data_check.converted import Converted
from pipeline.data_check.found import FoundColumn, FoundFile, Role
from pipeline.data_check.reading import Reading
from pipeline.data_convert.convert import Output
from preprocessing.reading.choice import survey
from preprocessing.reading.columns import Columns, Layout
from preprocessing.reading.files import SourceFile
from preprocessing.reading.layouts import format_name
from preprocessing.reading.look import read_table
from preprocessing.reading.open_files import file_compression
from preprocessing.reading.records import ReadOptions

_FILES = 50
"""The maximum number of files whose columns are listed."""


def found_files(
    converted: Converted,
    read: Sequence[SourceFile],
    attempt: Attempt,
    reading: Reading,
    options: ReadOptions,
) -> tuple[FoundFile, ...]:
    """Return the files of an input, with what was found in each.

    Args:
      converted: the files, of which some are converted.
      read: the files that were read.
      attempt: how they were read.
      reading: the lines of a sample.
      options: the options for reading files.
    """
    groups = {file.path: file.group for file in read}
    # An attempt that failed has no layouts.
    pairs = zip(read, attempt.layouts, strict=False)
    layouts = {file.path: layout for file, layout in pairs}
    partial = reading.incomplete | converted.partial
    found = []
    for number, one in enumerate(converted.outputs):
        path = one.file.path
        layout = layouts.get(path)
        found.append(
            FoundFile(
                path=one.shown,
                group=groups.get(path, one.file.group),
                size=one.size,
                format=format_name(layout) if layout else "",
                compression=_compression(one),
                encoding=_encoding(one, layout),
                columns=_columns(path, layout, options) if number < _FILES else (),
                lines=reading.lines.get(path, 0),
                is_complete=path in reading.lines and path not in partial,
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
    role_of: dict[str, Role] = {}
    if layout and layout.columns:
        for columns in survey(table.records, layout).alternatives:
            role_of |= _roles(columns, Role.OTHER_LABEL, Role.OTHER_TITLE, Role.OTHER_TEXT)
        role_of |= _roles(layout.columns, Role.LABEL, Role.TITLE, Role.TEXT)
    return tuple(
        FoundColumn(name, role_of.get(name, Role.IGNORED), example(values_of(table, name)))
        for name in table.names
    )


def _roles(columns: Columns, label: Role, title: Role, text: Role) -> dict[str, Role]:
    """Return name of a column -> its role, for the columns that the file has."""
    pairs = zip(columns.roles.values(), (label, title, text), strict=True)
    return {name: role for name, role in pairs if name}


def _encoding(output: Output, layout: Layout | None) -> str:
    """Return the encoding of a file; empty if it is unknown, or the file is no text."""
    if layout and layout.format == "parquet":
        return ""
    encodings = [change.encoding for change in output.changes if change.encoding]
    if encodings:
        return encodings[0]
    return "UTF-8" if layout else ""


def _compression(output: Output) -> str:
    archives = [change.archive for change in output.changes if change.archive]
    if archives:
        return archives[0]
    if is_url(output.source) or not os.path.isfile(output.source):
        return ""
    try:
        return file_compression(output.source) or ""
    except (InputError, OSError):
        return ""
