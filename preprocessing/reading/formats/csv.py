"""CSV: batches of reviews, and samples, from the records of a file.

Files that were joined have headers between their records, see `_Header`. For lost quotation marks,
see `csv_records`: there a line is a review if its label is valid. Valid are the labels on the scale
of sentiment. With other classes, and if labels are not read, those of earlier records are. A line
without a label then requires three fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import Any, BinaryIO

from preprocessing.reading.columns import (
    HEADERLESS,
    KNOWN_TEXTS,
    TEXT,
    Dialect,
    Layout,
    candidates,
    names_in_lower_case,
)
from preprocessing.reading.formats import RowReader
from preprocessing.reading.formats.csv_records import RETURNS, RecordLines, head_records, records_of
from preprocessing.reading.labels import WORDS, LabelReader
from preprocessing.reading.records import (
    BROKEN_CSV,
    NO_TEXT,
    REPEATED_HEADER,
    Batch,
    Rejected,
)

_LONGEST_NAME = 30
"""Maximum characters of a name in the header of a file that was appended to another file."""
_RECORDS = 1_000
"""Records of a batch."""
_LEAST_FIELDS = 3
"""The least number of fields of a line without a label that counts as a record of its own."""
_MOST_LABELS = 10_000
"""Maximum number of labels of earlier records."""
_RULE = re.compile(r"(?=.*(?:--|==))[-=+:|\s]+")
"""A line under a header, as SQL Server, PostgreSQL and Markdown write it."""
_BLANKS = "white space between a separator and a quotation mark"
_SPACED = re.compile(r'\s+"')
_SPACED_FIELD = re.compile(r' +"((?:[^"]|"")*)"')
_RETURN = re.compile(r"\r(?!\n)")


def sample(lines: bytes, layout: Layout, *, is_head: bool) -> list[dict[str, str]]:
    """Return records of a file, column -> field.

    In the middle of a file it is unknown whether the first line is inside a quoted field. So the
    lines are parsed under both assumptions, and the last records on which both agree are returned.

    Args:
      lines: lines of the file.
      layout: its layout.
      is_head: whether `lines` are the beginning of the file.
    """
    header, dialect = _Header(layout), layout.dialect

    def records(data: bytes) -> list[list[str]]:
        found = head_records(data, dialect, is_head=is_head)
        return [row for row in found if is_head or len(row) == len(header.names)]

    found = records(lines)
    if dialect.quoted and not is_head and b'"' in lines:
        both = zip(reversed(found), reversed(records(b'"' + lines)), strict=False)
        found = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], both)]
        found.reverse()
    return [
        _by_name(header.names, row)
        for row in found
        if not header.take(row) and len(row) == len(header.names)
    ]


def other_widths(head: bytes, layout: Layout) -> tuple[list[list[str]], int]:
    """Return the records with another number of fields than their header, and the number of all.

    Headers and empty records do not count.

    Args:
      head: the beginning of the file.
      layout: its layout.
    """
    header = _Header(layout)
    others, number = [], 0
    for fields in head_records(head, layout.dialect):
        if any(fields) and not header.take(fields):
            number += 1
            if len(fields) != len(header.names):
                others.append(fields)
    return others, number


def _by_name(names: list[str], fields: list[str]) -> dict[str, str]:
    """Return the fields of a record by their names; of equal names, the first has its field."""
    return dict(zip(reversed(names), reversed(fields), strict=True))


def _names(layout: Layout) -> list[str]:
    """Return the names of the fields of each record."""
    columns = layout.columns or HEADERLESS
    return [name.strip() for name in layout.header or columns.roles.values() if name is not None]


class _Header:
    """The header of a file, and the headers of files that were appended to it.

    A header is a record with the names of the first one, in any order and case, or with the names
    of a label and a text in one of the known datasets.

    Attributes:
      names: the names of the fields after the last header.
      longest: the maximum number of characters of a field of a header.
    """

    def __init__(self, layout: Layout) -> None:
        self.names = _names(layout)
        self._own = self.names if layout.header else []
        self._by_lower = {name.lower(): name for name in self._own}
        # Programs that align the columns of a table pad the names of a header with blanks.
        self.longest = max(_LONGEST_NAME, *map(len, layout.header or self.names))
        self._chosen = {role: name for role, name in layout.chosen.items() if name}
        # Every header has the name of a text, or all names of the first header.
        own = max(self._by_lower, key=len, default=TEXT)
        self._signs = KNOWN_TEXTS | {own, self._chosen.get(TEXT, TEXT).lower()}

    def take(self, fields: list[str]) -> bool:
        """Return whether a record is a header; if so, use its names for the next records."""
        if not self._may_be_one(fields):
            return False
        names = [name.strip() for name in fields]
        if names != self._own:
            lower = {name.lower() for name in names}
            # One word may be a review.
            is_own = len(names) == len(self._own) > 1 and lower == self._by_lower.keys()
            if not is_own and not self._has_columns(names):
                return False
            names = [self._by_lower.get(name.lower(), name) for name in names]
        self.names = names
        return True

    def _may_be_one(self, fields: list[str]) -> bool:
        """Return whether a record may be a header; for short texts this saves most of the time."""
        if max(map(len, fields)) > self.longest:
            return False
        names = map(str.lower, map(str.strip, fields))
        return not self._signs.isdisjoint(names)

    def _has_columns(self, names: list[str]) -> bool:
        """Return whether these are the names of a label and a text."""
        if not set(self._chosen.values()) <= set(names):
            return False
        found = candidates(names_in_lower_case(names), self._chosen)
        return any(columns.label and columns.text for columns in found)


def _is_sep_line(fields: list[str], dialect: Dialect) -> bool:
    """Return whether a record is Excel's line `sep=;` before the header of a file."""
    return fields[0] in ("sep=", f"sep={dialect.separator}") and not any(fields[1:])


def _without_blanks(field: str) -> str:
    """Return what is within the quotation marks of a field, if only blanks precede them."""
    found = _SPACED_FIELD.fullmatch(field)
    return found[1].replace('""', '"') if found else field


def _picker(names: list[str], reader: RowReader) -> itemgetter[Any]:
    """Return a function: fields of a record with these names -> values for `RowReader.add_usual`.

    The caller adds an empty field after the last one, the value of a column that the file lacks.
    """
    return itemgetter(
        *(names.index(name) if name in names else len(names) for name in reader.names)
    )


class _Parser:
    """A parser of the records of a file, one after the other.

    Args:
      layout: the layout of the file.
      lines: the lines of the file.
    """

    def __init__(self, layout: Layout, lines: RecordLines) -> None:
        self._lines = lines
        self._dialect = layout.dialect
        self._header = _Header(layout)
        self._reader = RowReader(layout)
        self._pick = _picker(self._header.names, self._reader)
        # Whether the next header is that of the file.
        self._is_first = layout.header is not None and not layout.header_of
        self._is_under_header = False
        self._before_quote = re.compile(re.escape(self._dialect.separator) + r' +"(?!")')
        self._has_breaks = _has_breaks(layout) and not layout.dialect.escapes
        self._reads_labels = layout.reads_labels
        self._labels = LabelReader(replace(layout, collected=None))
        # With other tasks than sentiment a file is read twice, at first without the meaning of
        # labels.
        is_first_pass = layout.collected is not None and layout.label_scale == WORDS
        self._has_scale = layout.reads_labels and not layout.label_map and not is_first_pass
        self._earlier: set[str] = set()  # the labels of the records so far, as in the file

    def is_review(self, fields: list[str]) -> bool:
        """Return whether the fields of a line are a review, see the docstring of the module."""
        if len(fields) != len(self._header.names):
            return False
        # A line of a text may begin with a number and a comma, but a blank follows it.
        if not self._dialect.skips_blanks and any(field[:1].isspace() for field in fields):
            return False
        label, _, text, *_ = self._pick([*fields, ""])
        if not text.strip():
            return False
        if self._has_scale:
            return self._labels.read(label) is not None
        if label:
            return label in self._earlier
        return not self._reads_labels and len(fields) >= _LEAST_FIELDS

    def add(self, batch: Batch, position: int, fields: list[str]) -> None:
        """Add a record to a batch, as a review or as a rejected line.

        Args:
          batch: the batch.
          position: the number of the first line of the record, from 1.
          fields: its fields.
        """
        header = self._header
        # Most reviews have a field that is too long for a header, so few records are inspected.
        is_usual = len(fields) == len(header.names) and (
            len(fields[-1]) > header.longest or max(map(len, fields)) > header.longest
        )
        if (not is_usual or self._is_under_header) and self._take(batch, position, fields):
            return
        # A part of a joined file may have blanks before quotes that the head lacks.
        may_be_spaced = self._dialect.quoted and fields[-1][:1] == " "
        if may_be_spaced and self._before_quote.search(self._lines.first_line()):
            fields = list(map(_without_blanks, fields))
        if self._has_breaks:
            fields = [field.replace(r"\n", "\n") for field in fields]
        values = self._pick([*fields, ""])
        if not self._has_scale and len(self._earlier) < _MOST_LABELS:
            self._earlier.add(values[0])
        if not self._reader.add_usual(batch, position, values, header.names):
            self._reader.add(batch, position, _by_name(header.names, fields))

    def _take(self, batch: Batch, position: int, fields: list[str]) -> bool:
        """Return whether a record is none of a review, such as a header; if so, reject it."""
        is_under_header, self._is_under_header = self._is_under_header, False
        width = len(self._header.names)
        if is_under_header and _RULE.fullmatch("".join(fields)):
            batch.reject(position, REPEATED_HEADER, "a line of dashes under a header")
        elif not any(fields):
            blank = "a blank line" if not fields else "an empty record"
            batch.reject(position, NO_TEXT, blank)
        elif (len(fields) == 1 or not fields[-1]) and _is_sep_line(fields, self._dialect):
            batch.reject(position, REPEATED_HEADER, "the line sep= of a file again")
        elif self._header.take(fields):
            self._pick = _picker(self._header.names, self._reader)
            # A single column may have a text of dashes.
            self._is_under_header = len(self._header.names) > 1
            if not self._is_first:
                batch.reject(position, REPEATED_HEADER, "the header of a file again")
            self._is_first = False
        elif len(fields) != width:
            shown = [field[:60] for field in fields[:3]]
            detail = f"{len(fields)} fields instead of {width}: {shown}"
            if any(map(_RETURN.search, fields)):
                detail = f"{RETURNS}, and {detail}"
                self._lines.lost += sum(len(field.encode("utf-8", "replace")) for field in fields)
            elif any(map(_SPACED.match, fields)):
                detail = f"{_BLANKS}, and {detail}"
            batch.reject(position, BROKEN_CSV, detail)
        else:
            return False
        return True


def _has_breaks(layout: Layout) -> bool:
    """Return whether a backslash and an `n` are a line break, as in files of the polarity set."""
    return layout.header is None and layout.dialect.separator == ","


def read_csv(path: str, stream: BinaryIO, layout: Layout) -> Iterator[Batch]:
    """Yield the records of a CSV file; the position of a record is that of its first line.

    The header is not a record. A further header, as in concatenated files, is rejected, and its
    names apply to the records after it.

    Args:
      path: unused; all readers of streams have the same arguments.
      stream: the content of the file.
      layout: the layout of the file.
    """
    dialect = layout.dialect
    if _has_breaks(layout) and dialect.escapes:
        # Two backslashes and an `n` are no line break there.
        dialect = dialect._replace(escapes=f"{dialect.escapes}n")
    lines = RecordLines(stream, dialect)
    parser = _Parser(layout, lines)
    records = records_of(lines, dialect, parser.is_review)
    lost = 0
    for first in records:
        batch = Batch()
        # Not a thousand in advance: `is_review` requires the labels of the records before.
        for record in chain([first], islice(records, _RECORDS - 1)):
            if isinstance(record, Rejected):
                batch.rejected.append(record)
            else:
                parser.add(batch, *record)
        batch.lost, lost = lines.lost - lost, lines.lost
        yield batch
