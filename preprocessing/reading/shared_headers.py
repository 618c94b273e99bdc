"""Read a CSV file without a header by the header of another file of the input.

`split -l` and exports in parts write such files: only the first part has the header. By position
alone, the title and the text of the other parts could be exchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from core.errors import InputError
from preprocessing.reading.columns import HEADERLESS, LABEL, ROLES, TEXT, Columns, Layout
from preprocessing.reading.csv_layout import find_dialect
from preprocessing.reading.detect import Header, Inspection, inspect
from preprocessing.reading.files import FILES_AT_ONCE, SourceFile
from preprocessing.reading.formats import csv
from preprocessing.reading.formats.csv_records import head_records
from preprocessing.reading.labels import (
    KNOWN_WORDS,
    NUMBERS,
    SCALES,
    STARS,
    has_stars,
    is_label,
    label_name,
    scale_label,
)
from preprocessing.reading.records import SENTIMENT_TASK, ReadOptions, printable, shown_names
from preprocessing.reading.samples import read_head
from preprocessing.reading.shell_commands import filter_command, header_command

_RECORDS = 20
"""Number of records that are compared with a header."""
_CHARACTERS = 40
"""The maximum number of characters of a field in a message."""


@dataclass(frozen=True)
class _Headed:
    """A file with a header.

    Attributes:
      header: the header.
      columns: the columns that are read.
      labels: the labels in the first records.
    """

    header: Header
    columns: Columns
    labels: frozenset[str | None] = field(compare=False)

    @property
    def positions(self) -> tuple[int | None, ...]:
        """The positions of the columns that are read; None for a column that is missing."""
        names = [name.strip() for name in self.header.names]
        return tuple(names.index(name) if name else None for name in self.columns.names)


def share_headers(
    files: Sequence[SourceFile], tried: Sequence[Inspection | InputError], options: ReadOptions
) -> list[Inspection | InputError]:
    """Return the results of inspecting files, in which files without a header share one.

    A file shares the header of a file with as many columns and the same separator if its first
    records have labels in the column of the labels. If they have not, an error replaces a result
    by which the file would be read by position.

    Args:
      files: the files of an input.
      tried: the result of `detect.inspect` for each of them, or the error that it raised.
      options: the options for reading them.
    """
    may_share = [isinstance(item, InputError) or _has_no_header(item.layout) for item in tried]
    headed: dict[tuple[object, ...], Inspection] = {}
    for item in tried if any(may_share) else []:
        if isinstance(item, Inspection) and item.layout.header and item.layout.columns:
            layout = item.layout
            headed.setdefault((layout.header, layout.dialect.separator), item)
    if not headed:
        return list(tried)
    found = [_headed(item) for item in headed.values()]

    def result(index: int) -> Inspection | InputError:
        if not may_share[index]:
            return tried[index]
        return _shared(files[index].path, tried[index], found, options)

    with ThreadPoolExecutor(FILES_AT_ONCE) as pool:
        return list(pool.map(result, range(len(files))))


def _has_no_header(layout: Layout) -> bool:
    return layout.format == "csv" and layout.header is None


def _headed(item: Inspection) -> _Headed:
    layout = item.layout
    columns = layout.columns or HEADERLESS
    header = Header(layout.header or (), layout.dialect.separator, item.path)
    head, _ = read_head(item.path)
    # The first records have only some of many classes.
    records = csv.sample(head, layout, is_head=True)
    labels = (label_name(record.get(columns.label or "")) for record in records)
    return _Headed(header, columns, frozenset(labels))


def _shared(
    path: str, item: Inspection | InputError, headed: Sequence[_Headed], options: ReadOptions
) -> Inspection | InputError:
    """Return the result for a file that has no header, or that cannot be read without another one.

    Args:
      path: the path of the file.
      item: the result without another header.
      headed: the files with different headers.
      options: the options for reading it.
    """
    separator = item.layout.dialect.separator if isinstance(item, Inspection) else None
    try:
        head, _ = read_head(path)
        alike, fitting = [], []
        for each in headed:
            records = _first_records(head, each.header.separator)
            width = len(each.header.names)
            if not records or len(records[0]) != width:
                continue
            # Without labels nothing shows that the header of this file is not only unknown.
            if each.positions[0] is None and isinstance(item, InputError):
                continue
            if separator in (None, each.header.separator):
                alike.append((each, records[0]))
                if _fits(records, each, options):
                    fitting.append(each)
        if len({each.positions for each in fitting}) > 1:
            return InputError(_several(path, fitting))
        if fitting and isinstance(item, Inspection) and _may_be_polarity(item, fitting[0], options):
            return InputError(_polarity(item, fitting[0]))
        if fitting:
            return inspect(path, options, fitting[0].header)
        # Of two columns the second is the text. Of three, title and text could be exchanged.
        is_ambiguous = any(len(first) == len(ROLES) for _, first in alike)
        if is_ambiguous and isinstance(item, Inspection):
            return InputError(_other_columns(path, *alike[0]))
    except InputError as error:
        return item if isinstance(item, InputError) else error
    return item


def _first_records(head: bytes, separator: str) -> list[list[str]]:
    return list(islice(head_records(head, find_dialect(head, separator)), _RECORDS))


def _fits(records: Sequence[Sequence[str]], headed: _Headed, options: ReadOptions) -> bool:
    """Return whether most records, and the first one, have a label where a header names one.

    Without a column of labels it is enough that the texts are where a file without a header has
    them.
    """
    label, title, text = headed.positions[:3]
    width = len(headed.header.names)
    if label is None:
        return (title, text) == ((1, 2) if width == len(ROLES) else (None, 1))
    labels = [fields[label] for fields in records if len(fields) == width]
    names = Counter(map(label_name, labels))

    def is_one(value: str) -> bool:
        if options.task != SENTIMENT_TASK:
            # A label may be any text, and is not unique.
            name = label_name(value)
            is_known = name in headed.labels or names[name] > 1
            return bool(name) and (is_known or is_label(value, options))
        if has_stars(headed.columns.label) and not options.label_map:
            return (scale_label(value) or "") in {**SCALES[STARS], **KNOWN_WORDS}
        return is_label(value, options)

    return is_one(labels[0]) and 2 * sum(map(is_one, labels)) > len(records)


def _may_be_polarity(item: Inspection, headed: _Headed, options: ReadOptions) -> bool:
    """Return whether stars of a part and the labels of a polarity file are equally likely.

    Both are 1 and 2, and 2 is negative or positive.
    """
    if not options.reads_labels or options.task != SENTIMENT_TASK or options.label_map:
        return False
    numbers = (item.labels or frozenset()) & set(NUMBERS)
    return has_stars(headed.columns.label) and numbers <= {"1", "2"} and bool(numbers)


def _polarity(item: Inspection, headed: _Headed) -> str:
    numbers = ", ".join(sorted((item.labels or frozenset()) & set(NUMBERS)))
    command = header_command(item.path, headed.header.names, headed.header.separator)
    return (
        f"{item.path}: the meaning of the labels {numbers} is not certain beside the stars of "
        f"{headed.header.path}, because the file has no header: if it is a part of the same file, "
        f"add the header, such as with `{command}`, and read only the new file; otherwise set "
        "data.labels to the meaning of all labels of the input"
    )


def _several(path: str, fitting: Sequence[_Headed]) -> str:
    first, second = (each.header.path for each in fitting[:2])
    command = filter_command(first, "head -n 1")
    return (
        f"{path} has no header, and the headers of {first} and {second} with as many columns name "
        f"different ones: write the one that applies before its first line, such as the output of "
        f"`{command}`, and read only the new file"
    )


def _other_columns(path: str, headed: _Headed, first: Sequence[str]) -> str:
    """Return the message about a file whose columns are not those of a header.

    Args:
      path: the path of the file.
      headed: the file with the header.
      first: the first record of the file.
    """
    names = headed.header.names
    at = headed.positions[0]
    if at is None:
        what = "which names no label"
    else:
        value = printable(first[at])[:_CHARACTERS]
        what = f"whose column `{printable(names[at].strip())}` would be {value!r} there"
    roles = ROLES if len(first) == len(ROLES) else (LABEL, TEXT)
    command = header_command(path, roles, headed.header.separator)
    return (
        f"{path} has no header, and its {len(first)} columns are not those of the header of "
        f"{headed.header.path}, {shown_names(names)}, {what}: add the names of its own columns, "
        f"such as with `{command}`, and read only the new file"
    )
