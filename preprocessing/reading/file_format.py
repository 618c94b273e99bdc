"""Find the format of a file by its first lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from core.errors import InputError
from preprocessing.reading.columns import LABEL, Layout
from preprocessing.reading.contents import PARQUET_MAGIC
from preprocessing.reading.csv_layout import (
    csv_layout,
    find_late_header,
    fits_header,
    is_regular,
    widest,
)
from preprocessing.reading.formats import fasttext
from preprocessing.reading.formats.csv_records import head_records
from preprocessing.reading.formats.jsonl import parse_object
from preprocessing.reading.label_lines import refuse_labels_beside, refuse_late_labels
from preprocessing.reading.labels import is_label
from preprocessing.reading.records import ReadOptions, printable

FORMATS = ("fasttext", "csv", "jsonl", "parquet")
_LINES_INSPECTED, _MOST = 20, 0.5
"""Lines that decide whether a file is fastText or JSON lines, and the fraction that is enough."""
_TEXT_NAME = re.compile(r".*\.txt(\.\w+)?", re.IGNORECASE)
_CSV_NAME = re.compile(r".*\.(csv|tsv)(\.\w+)?", re.IGNORECASE)


class UnknownFormatError(InputError):
    """A file whose format is unknown."""


def find_format(path: str, head: bytes, options: ReadOptions) -> str:
    """Return the format of a file by its first lines.

    Args:
      path: path or URL of the file.
      head: the result of `samples.read_head`.
      options: the options for reading it.

    Raises:
      UnknownFormatError: the format is unknown, or a plain text lacks the columns that are set.
      InputError: the file cannot be opened.
    """
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    # A field of a CSV file may contain a line of another format.
    line_format, fraction = _format_of_lines(head)
    if fraction >= _MOST and not _begins_with_a_header(path, head, options):
        return line_format
    is_text = not options.reads_labels and _TEXT_NAME.fullmatch(path)
    try:
        # The lines of a text have no ids. A missing column of the ids is reported later.
        searched = replace(options, id=None) if is_text else options
        layout = csv_layout(path, head, searched)
        # `Positive, but slow` may be the first line of a text, in which it is not a record.
        if layout.header is not None or not is_text or _begin_with_labels(head, layout, options):
            return "csv"
    except InputError as error:
        names_a_column = any(name for role, name in options.columns.items() if role != LABEL)
        if is_text and names_a_column:
            raise UnknownFormatError(
                f"{error}; if each of its lines is a text, set data.format to fasttext"
            ) from error
    lines = _first_lines(head)
    # In a table with a header they are a column, which the settings can name.
    if is_text or not _has_names(head):
        refuse_late_labels(path, lines)
    if is_text:
        refuse_labels_beside(path, lines, head, reads_labels=False)
        return "fasttext"  # plain text, a review on each line
    if fraction:
        return line_format
    dialect, first = widest(head)
    has_columns = len(first) > 1 and (options.columns or is_regular(head, dialect))
    if has_columns or _CSV_NAME.fullmatch(path) or find_late_header(head):
        return "csv"  # a missing column is reported later
    refuse_labels_beside(path, lines, head, reads_labels=options.reads_labels)
    raise UnknownFormatError(
        f"{path} is of no known format, it starts with '{printable(head)[:60]}': set "
        f"data.format to one of {', '.join(FORMATS)} (fastText: __label__ and a label before each "
        "text; JSON: one object a line; CSV: see data.columns)"
    )


def _has_names(head: bytes) -> bool:
    """Return whether a file is a table whose first record has no label of fastText."""
    dialect, first = widest(head)
    return len(first) > 1 and "__label__" not in "".join(first) and is_regular(head, dialect)


def _begins_with_a_header(path: str, head: bytes, options: ReadOptions) -> bool:
    """Return whether the first line is the header of a CSV file with known columns.

    The first of its fields may have many lines of another format. Most records fit the header.
    """
    first = _first_lines(head)[0]
    if fasttext.LINE.fullmatch(first) or first.lstrip().startswith(b"{"):
        return False
    try:
        layout = csv_layout(path, head, options)
    except InputError:
        return False
    return layout.header is not None and fits_header(head, layout.dialect)


def _begin_with_labels(head: bytes, layout: Layout, options: ReadOptions) -> bool:
    """Return whether the first lines of a text are records of CSV without a header.

    Each of them has a label and as many fields as the first one. Labels that may be any text are
    recognised only before tabs, which texts rarely contain. A blank follows a comma in a text.
    """
    records = list(islice(head_records(head, layout.dialect), _LINES_INSPECTED))
    if {len(fields) for fields in records} != {len(records[0])}:
        return False
    return layout.dialect.separator == "\t" or all(
        is_label(label, options) and not after[:1].isspace() for label, after, *_ in records
    )


def has_line_format(head: bytes) -> bool:
    """Return whether enough of the first lines are fastText or JSON lines."""
    return _format_of_lines(head)[1] >= _MOST


def _format_of_lines(head: bytes) -> tuple[str, float]:
    """Return fastText or JSON lines, whichever fits more of the first lines, and the fraction."""
    lines = _first_lines(head)
    labelled = sum(fasttext.LINE.fullmatch(line) is not None for line in lines)
    objects = sum(isinstance(parse_object(1, line), dict) for line in lines)
    if labelled >= objects:
        return "fasttext", labelled / len(lines)
    return "jsonl", objects / len(lines)


def _first_lines(head: bytes) -> list[bytes]:
    """Return the first lines that are not blank."""
    lines = (line.rstrip(b"\r") for line in head.split(b"\n") if line.strip())
    return list(islice(lines, _LINES_INSPECTED))


def objects(lines: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects of JSON lines; other lines are skipped."""
    for line in lines.split(b"\n"):
        fields = parse_object(1, line)
        if isinstance(fields, dict):
            yield fields
