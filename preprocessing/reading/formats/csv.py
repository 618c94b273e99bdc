"""CSV: records that may span lines, read so that a broken quote loses only one line.

If a record breaks the rules of quoting, or is still open after 1 MB or at the end of the file, only
its first line is rejected, and reading continues at the next line. Every line then belongs to
exactly one record, which is read or rejected. A record that is truncated by damage to an archive is
rejected as a whole, because its lines alone would be misread as records. A carriage return within a
line is a character of its field, because pandas writes it without quotes. Byte order marks before a
record are skipped: in a file that was joined from several, each of them may have begun with one.

A quote that is not closed may also end at a lone quote of a later record, such as `24"`, and all
lines between them are then one valid field. If nearly each line of such a record behind the first
is a record with a valid label, the first line alone is rejected. Valid are the labels on the scale
of sentiment. With other classes, and if labels are not read, those of earlier records are. A record
without a label then requires three fields.

`pyarrow.csv` takes 0.7 of the time. But if a quote is closed only in a later record, it returns one
long field without an error, and it reports neither the line of a record nor the position of damage.

The lines after an open quote are read again. Crafted quotes could cause this at every line, so
after a maximum of such bytes these lines are rejected.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice, takewhile
from operator import itemgetter
from typing import Any, BinaryIO

from preprocessing.reading.archives import CorruptArchive
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
from preprocessing.reading.labels import WORDS, LabelReader
from preprocessing.reading.pieces import (
    MAX_LINE_BYTES,
    TOO_LONG,
    Chunk,
    Lost,
    count_filled,
    split_lines,
)
from preprocessing.reading.records import (
    BROKEN_CSV,
    CORRUPT_ARCHIVE,
    LINE_TOO_LONG,
    NO_TEXT,
    REPEATED_HEADER,
    Batch,
    Rejected,
    rejected,
)

# The replacement of NUL, which the csv module of Python 3.10 refuses. A text with it is rejected,
# see `records.text_problem`, like one with bytes that are not UTF-8, which become U+DC80 and up.
_NUL = "\udc00"
# The replacement of a carriage return within a line, which the csv module refuses without quotes.
_CR = "\udc01"
_READ = 1 << 20
_LONGEST_NAME = 30
"""Maximum characters of a name in the header of a file that was appended to another file."""
_RECORDS = 1_000
"""Records of a batch."""
_MAX_READ_AGAIN = 1 << 25
"""Maximum bytes of a file that are read again after open quotes."""

# The csv module's message for a quoted field that is still open at the end.
_OPEN = "unexpected end of data"
_OPEN_QUOTE = "a quotation mark that is not closed"
_RETURNS = "carriage returns in a line, as if it contained records that end with CR alone"
_RETURN = re.compile(r"\r(?!\n)")
_QUOTE = '"'
_LEAST_LINES = 8
"""The least number of lines of a record whose quote is closed by a later record. A review may have
some lines that are like records, such as `5,comfort`, and a lost quote takes many."""
_OTHERS = 10
"""One in so many of these lines may be no valid record."""
_LEAST_FIELDS = 3
"""The least number of fields of such a line that has no label."""
_MOST_LABELS = 10_000
"""Maximum number of labels of earlier records."""


class _TooLong(Exception):
    """A line or a quoted field that is longer than the limit; its arguments are the reason."""


class _OpenQuote(Rejected):
    """A line that is rejected because its quote is not closed."""


class _Lines:
    """The lines for a csv.reader, which can return to the second line of the current record."""

    def __init__(self, stream: BinaryIO, dialect: Dialect) -> None:
        self._fresh = self._numbered_lines(stream, dialect)
        self._again: deque[tuple[int, bytes | None]] = deque()
        self._taken: list[tuple[int, bytes | None]] = []
        self._size = 0
        self._last = 0
        self._read_again = 0
        self._has_marks = False  # whether byte order marks were read
        self.is_changed = False  # whether the current record has a NUL, or a CR within a line
        self.position = 0  # the first line of the current record
        # The number of bytes so far in lines that are too long or contain several records, and in
        # long runs of NUL or 0xFF.
        self.lost = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not self._taken:
            # Set before the line is read, because damage to an archive may truncate this line.
            self.position = self._again[0][0] if self._again else self._last + 1
        number, line = self._again.popleft() if self._again else next(self._fresh)
        self._last = number
        if self._has_marks and line and not self._taken:
            while line.startswith(codecs.BOM_UTF8):
                line = line.removeprefix(codecs.BOM_UTF8)
        self._taken.append((number, line))
        if line is None and len(self._taken) == 1:
            raise _TooLong(LINE_TOO_LONG, TOO_LONG)
        self._size += len(line or b"")
        if line is None or self._size > MAX_LINE_BYTES + len("\r"):
            raise _TooLong(BROKEN_CSV, "a quoted field of more than 1 MB")
        text = line.decode("utf-8", "surrogateescape")
        if "\0" in text:
            self.is_changed = True
            text = text.replace("\0", _NUL)
        if -1 < text.find("\r") < len(text) - 1:
            inside = text.rstrip("\r")
            self.is_changed = self.is_changed or "\r" in inside
            text = inside.replace("\r", _CR) + text[len(inside) :]
        return text + "\n"

    def restored(self, record: list[str]) -> list[str]:
        """Return the fields of a record, with the characters in place of their replacements."""
        return [field.replace(_CR, "\r").replace(_NUL, "\0") for field in record]

    def next_record(self) -> None:
        """Discard the lines of the record that was read."""
        self._taken.clear()
        self._size = 0
        self.is_changed = False

    def first_line(self) -> str:
        """Return the first line of the current record."""
        return (self._taken[0][1] or b"").decode("utf-8", "surrogateescape").rstrip("\r")

    def lose_first(self) -> None:
        """Count the bytes of the first line of the current record as lost."""
        self.lost += len(self._taken[0][1] or b"")

    @property
    def height(self) -> int:
        """The number of lines of the current record."""
        return len(self._taken)

    def following(self) -> list[bytes]:
        """Return the lines of the current record behind the first."""
        return [line or b"" for _, line in self._taken[1:]]

    def keep_first_only(self) -> Iterator[Rejected]:
        """Return to the second line of the current record, or yield its other lines as rejected."""
        self._read_again += self._size
        if self._read_again <= _MAX_READ_AGAIN:
            self._again.extendleft(reversed(self._taken[1:]))
        else:
            for number, _ in self._taken[1:]:
                yield rejected(number, BROKEN_CSV, "after a quote that is not closed")
        self.next_record()

    def _numbered_lines(
        self, stream: BinaryIO, dialect: Dialect
    ) -> Iterator[tuple[int, bytes | None]]:
        """Yield the lines of a file with their numbers, from 1; a line that is too long is None.

        Two lines are left out: the line `sep=;`, which Excel writes and reads before a header, and
        a line that is truncated by damage to an archive.

        Raises:
          CorruptArchive: the archive is damaged after the yielded lines.
        """
        blocks = iter(partial(stream.read, _READ), b"")
        for found in split_lines((Chunk(data, True) for data in blocks), 0):
            if isinstance(found, Lost):
                self.lost += found.bytes
                yield found.record.position, None
                continue
            self.lost += count_filled(found.data)
            self._has_marks = self._has_marks or codecs.BOM_UTF8 in found.data
            lines = found.data.split(b"\n")
            first = lines[0].removeprefix(codecs.BOM_UTF8).strip(b'"\r')
            skip = found.first == 1 and first == b"sep=" + dialect.separator.encode()
            yield from enumerate(lines[skip:], found.first + skip)


def _reader(lines: Iterable[str], dialect: Dialect) -> Iterator[list[str]]:
    return csv.reader(
        lines,
        delimiter=dialect.separator,
        quoting=csv.QUOTE_MINIMAL if dialect.quoted else csv.QUOTE_NONE,
        skipinitialspace=dialect.skips_blanks,
        strict=True,
    )


def csv_records(stream: BinaryIO, dialect: Dialect) -> Iterator[tuple[int, list[str]] | Rejected]:
    """Yield all records of a CSV file, each with the number of its first line, or rejected lines.

    A blank line is a record without fields. The docstring of the module describes broken quotes.
    Damage to an archive becomes a rejected line.

    Args:
      stream: the content of the file.
      dialect: the syntax of the file.
    """
    return _records(_Lines(stream, dialect), dialect)


def _records(
    lines: _Lines, dialect: Dialect, is_review: Callable[[list[str]], bool] | None = None
) -> Iterator[tuple[int, list[str]] | Rejected]:
    """Yield what `csv_records` yields.

    Args:
      lines: the lines of the file.
      dialect: the syntax of the file.
      is_review: whether the fields of a line are a record with a valid label. None: a record of
        several lines is never taken for several records.
    """
    # The csv module's default limit, which is global, is far below the length of a long review.
    csv.field_size_limit(max(csv.field_size_limit(), 2 * MAX_LINE_BYTES))
    reader = _reader(lines, dialect)
    while True:
        try:
            fields = next(reader)
        except StopIteration:
            return
        except CorruptArchive as damage:
            yield rejected(lines.position, CORRUPT_ARCHIVE, damage.detail)
            return
        except _TooLong as too_long:
            yield rejected(lines.position, *too_long.args)
        except csv.Error as error:
            line = lines.first_line()
            cause = _cause(str(error), line, dialect)
            if cause == _RETURNS:
                lines.lose_first()
            if cause == _OPEN_QUOTE:
                yield _open_quote(lines.position, line)
            else:
                yield rejected(lines.position, BROKEN_CSV, f"{cause}: {line}")
        else:
            has_reviews = (
                is_review is not None
                and lines.height >= _LEAST_LINES
                and _are_reviews(lines.following(), dialect, is_review)
            )
            if not has_reviews:
                yield lines.position, lines.restored(fields) if lines.is_changed else fields
                lines.next_record()
                continue
            yield _open_quote(lines.position, lines.first_line())
        yield from lines.keep_first_only()
        reader = _reader(lines, dialect)  # the old one is still within the field


def _are_reviews(
    lines: list[bytes], dialect: Dialect, is_review: Callable[[list[str]], bool]
) -> bool:
    """Return whether nearly each of some lines of a record is a review of its own."""
    allowed = len(lines) // _OTHERS
    for line in lines:
        if not is_review(_fields(line, dialect)):
            allowed -= 1
            if allowed < 0:
                return False
    return True


def _fields(line: bytes, dialect: Dialect) -> list[str]:
    """Return the fields of a record on one line; none if it is blank or breaks the rules."""
    text = line.decode("utf-8", "surrogateescape").rstrip("\r")
    # A new reader takes ten times as long, and most lines of texts have no quotes.
    if _QUOTE not in text and not dialect.skips_blanks:
        return text.split(dialect.separator)
    try:
        return next(_reader([text.replace("\0", _NUL).replace("\r", _CR)], dialect))
    except csv.Error:
        return []


def _cause(error: str, line: str, dialect: Dialect) -> str:
    """Return the reason why a record breaks the rules of quoting.

    Args:
      error: the message of the csv module, which is the same for most of these faults.
      line: the first line of the record.
      dialect: the syntax of the file.
    """
    if error == _OPEN:
        return _OPEN_QUOTE
    if f"{_QUOTE}\r" in line:  # within a text there may be carriage returns too
        return _RETURNS
    if r"\"" in line:
        return "a quotation mark after a backslash"
    if f'" {dialect.separator}' in line:
        return "a blank between a quotation mark and a separator"
    if line.endswith('" '):
        return "a blank between a quotation mark and the end of the line"
    if error.endswith(f"expected after '{_QUOTE}'"):
        return "a single quotation mark within a quoted field"
    return error


def _open_quote(position: int, line: str) -> _OpenQuote:
    return _OpenQuote(*rejected(position, BROKEN_CSV, f"{_OPEN_QUOTE}: {line}"))


def head_records(data: bytes, dialect: Dialect, *, is_head: bool = True) -> Iterator[list[str]]:
    """Yield the valid records of a part of a CSV file, without blank lines.

    The last record may be truncated, and its lines would be misread as records. So nothing is
    yielded after a quoted field that is still open at the end, unless the first review has it.

    Args:
      data: lines of the file.
      dialect: the syntax of the file.
      is_head: whether `data` is the beginning of the file.
    """
    count = 0
    for record in csv_records(io.BytesIO(data), dialect):
        if not isinstance(record, Rejected):
            if record[1]:
                count += 1
                yield record[1]
        elif isinstance(record, _OpenQuote) and (count > 1 or not is_head):
            return


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
    return [name.strip() for name in layout.header or columns[:3] if name is not None]


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
        self.longest = max(_LONGEST_NAME, *map(len, self.names))
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


def _picker(names: list[str], reader: RowReader) -> itemgetter[Any]:
    """Return a function: fields of a record with these names -> values for `RowReader.add_usual`.

    The caller adds an empty field after the last one, the value of a column that the file lacks.
    """
    return itemgetter(
        *(names.index(name) if name in names else len(names) for name in reader.names)
    )


def read_csv(path: str, stream: BinaryIO, layout: Layout) -> Iterator[Batch]:
    """Yield the records of a CSV file; the position of a record is that of its first line.

    The header is not a record. A further header, as in concatenated files, is rejected, and its
    names apply to the records after it.

    Args:
      path: unused; all readers of streams have the same arguments.
      stream: the content of the file.
      layout: the layout of the file.
    """
    header = _Header(layout)
    reader = RowReader(layout)
    pick = _picker(header.names, reader)
    # Whether the next header is that of the file.
    is_first = layout.header is not None and not layout.header_of
    # The files of the polarity set have a backslash and an `n` in place of a line break.
    escaped = layout.header is None and layout.dialect.separator == ","
    lines = _Lines(stream, layout.dialect)
    labels = LabelReader(replace(layout, collected=None))
    # With other tasks than sentiment a file is read twice, at first without the meaning of labels.
    is_first_pass = layout.collected is not None and layout.label_scale == WORDS
    has_scale = layout.reads_labels and not layout.label_map and not is_first_pass
    earlier: set[str] = set()  # the labels of the records so far, in the spelling of the file

    def is_review(fields: list[str]) -> bool:
        if len(fields) != len(header.names):
            return False
        # A line of a text may begin with a number and a comma, but a blank follows it.
        if not layout.dialect.skips_blanks and any(field[:1].isspace() for field in fields):
            return False
        label, _, text, *_ = pick([*fields, ""])
        if not text.strip():
            return False
        if has_scale:
            return labels.read(label) is not None
        if label:
            return label in earlier
        return not layout.reads_labels and len(fields) >= _LEAST_FIELDS

    records = _records(lines, layout.dialect, is_review)
    lost = 0
    for first in records:
        batch = Batch()
        # Not a thousand in advance: `is_review` requires the labels of the records before.
        for record in chain([first], islice(records, _RECORDS - 1)):
            if isinstance(record, Rejected):
                batch.rejected.append(record)
                continue
            position, fields = record
            if not any(fields):
                blank = "a blank line" if not fields else "an empty record"
                batch.reject(position, NO_TEXT, blank)
            elif (len(fields) == 1 or not fields[-1]) and _is_sep_line(fields, layout.dialect):
                batch.reject(position, REPEATED_HEADER, "the line sep= of a file again")
            # The last field of most reviews is too long for a header, so few reviews are inspected.
            elif len(fields[-1]) <= header.longest and header.take(fields):
                pick = _picker(header.names, reader)
                if not is_first:
                    batch.reject(position, REPEATED_HEADER, "the header of a file again")
                is_first = False
            elif len(fields) != len(header.names):
                shown = [field[:60] for field in fields[:3]]
                detail = f"{len(fields)} fields instead of {len(header.names)}: {shown}"
                if any(map(_RETURN.search, fields)):
                    detail = f"{_RETURNS}, and {detail}"
                    lines.lost += sum(len(field.encode("utf-8", "replace")) for field in fields)
                batch.reject(position, BROKEN_CSV, detail)
            else:
                if escaped:
                    fields = [field.replace(r"\n", "\n") for field in fields]
                values = pick([*fields, ""])
                if not has_scale and len(earlier) < _MOST_LABELS:
                    earlier.add(values[0])
                if not reader.add_usual(batch, position, values, header.names):
                    reader.add(batch, position, _by_name(header.names, fields))
        batch.lost, lost = lines.lost - lost, lines.lost
        yield batch
