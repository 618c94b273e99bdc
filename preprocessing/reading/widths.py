"""Explain why nearly all records of a CSV file have another number of fields than its header."""

from __future__ import annotations

import csv as standard_csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice

from preprocessing.reading.columns import SEPARATORS, Columns, Dialect, Layout
from preprocessing.reading.formats import csv
from preprocessing.reading.formats.csv_records import OpenQuote, csv_records, head_records
from preprocessing.reading.labels import is_label
from preprocessing.reading.pieces import MAX_LINE_BYTES
from preprocessing.reading.records import ReadOptions, Rejected
from preprocessing.reading.shell_commands import filter_command, header_command

_MOST, _LEAST = 0.9, 2
"""The fraction of the records that are nearly all, and the least number of records."""
_UNQUOTE = (
    "python3 -c \"import csv, sys; sys.stdin.reconfigure(encoding='utf-8-sig'); "
    "[print(','.join(row)) for row in csv.reader(sys.stdin)]\""
)
"""The command that writes the only field of each record."""
_ONLY_NEW = "and read only the new file"


def width_problem(path: str, head: bytes, layout: Layout, options: ReadOptions) -> str | None:
    """Return a clause with the problem and the remedy; None if the records fit the header.

    Args:
      path: path or URL of the file.
      head: the result of `samples.read_head`.
      layout: the layout of a CSV file.
      options: the options for reading it.

    Raises:
      InputError: the file cannot be opened.
    """
    if not layout.header or not layout.columns:
        return None
    others, number = csv.other_widths(head, layout)
    if len(others) < max(_LEAST, _MOST * number):
        return None
    names = [name.strip() for name in layout.header]
    long = _long_record(head, layout.dialect)
    if long:
        return (
            f"has a quotation mark in line {long:,}, the first record, that is not closed, and a "
            f"record has at most {MAX_LINE_BYTES:,} bytes: close it, or shorten or remove this "
            f"record, {_ONLY_NEW}"
        )
    [(width, count)] = Counter(map(len, others)).most_common(1)
    if _are_quoted_records(others, len(names), layout.dialect.separator):
        return _quoted_lines(path)
    separator = _other_separator(head, layout)
    if separator:
        return _with_command(
            path,
            head,
            f"separates the {len(names)} names of its header with "
            f"{SEPARATORS[layout.dialect.separator]}, and the fields of its records with "
            f"{SEPARATORS[separator]}: write the header with the same separator",
            names,
            separator,
        )
    if count < _MOST * number:
        return None
    records = [fields for fields in others if len(fields) == width]
    every = "every record" if count == number else "nearly every record"
    what = (
        f"has a header with {len(names)} {'name' if len(names) == 1 else 'names'}, and {every} has "
        f"{width} {'field' if width == 1 else 'fields'}"
    )
    cause, new = _cause(names, records, layout.columns, options)
    return _with_command(path, head, f"{what}{cause}", new, layout.dialect.separator)


def _long_record(head: bytes, dialect: Dialect) -> int | None:
    """Return the line of the first record behind the header if its quote is open at the end.

    Its lines were taken for records then.
    """
    behind = islice(csv_records(io.BytesIO(head), dialect), 1, None)
    first = next((item for item in behind if isinstance(item, Rejected) or item[1]), None)
    return first.position if isinstance(first, OpenQuote) else None


def quoted_lines_problem(path: str, records: Sequence[Sequence[str]]) -> str | None:
    """Return a clause if each record is one quoted field with a record of CSV; otherwise None.

    Args:
      path: path or URL of the file.
      records: the first records of the file, with its header.

    Raises:
      InputError: the file cannot be opened.
    """
    for separator in SEPARATORS if len(records[0]) == 1 else ():
        width = len(_inner(records[0][0], separator))
        if _are_quoted_records(records, width, separator):
            return _quoted_lines(path)
    return None


def _are_quoted_records(records: Sequence[Sequence[str]], width: int, separator: str) -> bool:
    """Return whether nearly all records have one field, which is a record with `width` fields."""
    inner = sum(
        len(fields) == 1 and len(_inner(fields[0], separator)) == width for fields in records
    )
    return width > 1 and inner >= max(_LEAST, _MOST * len(records))


def _inner(field: str, separator: str) -> list[str]:
    """Return the fields of a record in a field; none if it is no record."""
    try:
        return next(standard_csv.reader([field], delimiter=separator, strict=True), [])
    except standard_csv.Error:
        return []


def _quoted_lines(path: str) -> str:
    command = filter_command(path, _UNQUOTE)
    return (
        "has the whole of each record in quotation marks, as if a CSV file was exported as CSV "
        f"again: write what is inside of them, such as with `{command}`, {_ONLY_NEW}"
    )


def _other_separator(head: bytes, layout: Layout) -> str | None:
    """Return another separator with which nearly all records have as many fields as the header."""
    if len(layout.header or ()) < 2:
        # With any separator that the records lack, each of them has one field.
        return None
    own = layout.dialect.separator
    for separator in (one for one in SEPARATORS if one != own):
        dialect = layout.dialect._replace(separator=separator)
        widths = [len(fields) for fields in head_records(head, dialect)][1:]
        if widths.count(len(layout.header or ())) >= max(_LEAST, _MOST * len(widths)):
            return separator
    return None


def _cause(
    names: Sequence[str],
    records: Sequence[Sequence[str]],
    columns: Columns,
    options: ReadOptions,
) -> tuple[str, list[str]]:
    """Return the cause with the remedy, and the right header; it is empty if it is unknown."""
    more = len(records[0]) - len(names)
    if more == -1 and not names[-1]:
        return ", because the header ends with a separator: remove it", list(names[:-1])
    if more == 1 and not any(fields[-1].strip() for fields in records):
        what = ", because each record ends with a separator: add a name to the header for it"
        return what, [*names, "unused"]
    if more == 1 and _is_shifted(names, records, columns, options):
        what = (
            ", because each record begins with the name of its row, which R writes without "
            "row.names=FALSE: add a name to the header for it"
        )
        return what, ["row", *names]
    if more > 0:
        what = (
            ": write a header with a name for each field, or, if a field contains the separator, "
            'this field in quotation marks (")'
        )
        return what, []
    return ": write a header with a name for each field", []


def _is_shifted(
    names: Sequence[str],
    records: Sequence[Sequence[str]],
    columns: Columns,
    options: ReadOptions,
) -> bool:
    """Return whether the first field of records with one field more than the header has no name."""

    def most(is_one: Callable[[str], bool], at: int) -> bool:
        return sum(is_one(fields[at]) for fields in records) >= _MOST * len(records)

    if columns.label:
        at = names.index(columns.label)

        def is_one(field: str) -> bool:
            return is_label(field, options)

        if most(is_one, at + 1) and not most(is_one, at):
            return True
    # A label may be any text. Then the first name is not that of a number of the row.
    numbers = [fields[0].strip() for fields in records]
    is_counted = all(map(str.isdecimal, numbers)) and len(set(numbers)) == len(numbers)
    return is_counted and names[0] in columns.roles.values() and names[0] != columns.label


def _with_command(
    path: str, head: bytes, problem: str, names: Sequence[str], separator: str
) -> str:
    """Return a problem with the command that replaces the header, if there is a simple one.

    Args:
      path: path or URL of the file.
      head: the beginning of the file.
      problem: the problem.
      names: the names of the new header; empty if they are unknown.
      separator: the character between them.
    """
    # A quotation mark may be a character like any other, and `tail` skips only one line.
    is_simple = not any(mark in name for name in names for mark in '"\n')
    # Excel's line `sep=;` precedes the header.
    has_sep = head[:5].lower().strip(b'"').startswith(b"sep=")
    if not names or not is_simple or has_sep:
        return f"{problem}, {_ONLY_NEW}"
    command = header_command(path, names, separator, "tail -n +2")
    return f"{problem}, such as with `{command}`, {_ONLY_NEW}"
