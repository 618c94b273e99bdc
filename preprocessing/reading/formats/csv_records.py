"""The records of CSV files, which may span lines, read so that a broken quote loses only one line.

If a record breaks the rules of quoting, or is still open after 1 MB or at the end of the file, only
its first line is rejected, and reading continues at the next line. Every line then belongs to
exactly one record, which is read or rejected. A record that is truncated by damage to an archive is
rejected as a whole, because its lines alone would be misread as records. A carriage return within a
line is a character of its field, because pandas writes it without quotes. A backslash may change
the meaning of the next character, see `Dialect.escapes`. Byte order marks before a record are
skipped: in a file that was joined from several, each of them may have begun with one.

A quote that is not closed may also end at a lone quote of a later record, such as `24"`, and all
lines between them are then one valid field. If nearly each line of such a record behind the first
is a review of its own, the first line alone is rejected. The caller decides what is a review.

`pyarrow.csv` takes 0.7 of the time. But if a quote is closed only in a later record, it returns one
long field without an error, and it reports neither the line of a record nor the position of damage.

The lines after an open quote are read again. Crafted quotes could cause this at every line, so
after a maximum of such bytes these lines are rejected.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import BinaryIO

from preprocessing.reading.archives import CorruptArchive
from preprocessing.reading.columns import Dialect
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
    Rejected,
    rejected,
)

# The replacement of NUL, which the csv module of Python 3.10 refuses. A text with it is rejected,
# see `records.text_problem`, like one with bytes that are not UTF-8, which become U+DC80 and up.
_NUL = "\udc00"
# The replacement of a carriage return within a line, which the csv module refuses without quotes.
_CR = "\udc01"
# What a character means behind a backslash, see `Dialect.escapes`, and its replacement.
_MEANINGS = {
    **{char: char for char in '"\\,;|\t\n'},
    **dict(zip("bfnrtv", "\b\f\n\r\t\v", strict=True)),
}
_REPLACED = {char: chr(0xDC02 + number) for number, char in enumerate(_MEANINGS)}
_READ = 1 << 20
_MAX_READ_AGAIN = 1 << 25
"""Maximum bytes of a file that are read again after open quotes."""

# The csv module's message for a quoted field that is still open at the end.
_OPEN = "unexpected end of data"
_OPEN_QUOTE = "a quotation mark that is not closed"
RETURNS = "carriage returns in a line, as if it contained records that end with CR alone"
_QUOTE = '"'
_LEAST_LINES = 8
"""The least number of lines of a record whose quote is closed by a later record. A review may have
some lines that are like records, such as `5,comfort`, and a lost quote takes many."""
_OTHERS = 10
"""One in so many of these lines may be no valid record."""


class _TooLong(Exception):
    """A line or a quoted field that is longer than the limit; its arguments are the reason."""


class OpenQuote(Rejected):
    """A line that is rejected because its quote is not closed."""


class RecordLines:
    """The lines for a csv.reader, which can return to the second line of the current record.

    Args:
      stream: the content of the file.
      dialect: the syntax of the file.

    Attributes:
      position: the number of the first line of the current record, from 1.
      is_changed: whether the current record has a NUL, a carriage return within a line, or a
        backslash, which are replaced for the csv.reader.
      lost: the number of bytes so far in lines that are too long or contain several records, and in
        long runs of NUL or 0xFF.
    """

    def __init__(self, stream: BinaryIO, dialect: Dialect) -> None:
        self._fresh = self._numbered_lines(stream, dialect)
        self._escapes = dialect.escapes
        escaped = [(_REPLACED[char], _MEANINGS[char]) for char in dialect.escapes]
        self._replaced = [(_NUL, "\0"), (_CR, "\r"), *escaped]
        self._again: deque[tuple[int, bytes | None]] = deque()
        self._taken: list[tuple[int, bytes | None]] = []
        self._size = 0
        self._last = 0
        self._read_again = 0
        self._has_marks = False  # whether byte order marks were read
        self.is_changed = False
        self.position = 0
        self.lost = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        text = self._take()
        if self._escapes and "\\" in text:
            self.is_changed = True
            parts = [_without_escapes(text, self._escapes)]
            # An escaped line break is not the end of the record.
            while "\n" in self._escapes and parts[-1].endswith("\\"):
                try:
                    following = _without_escapes(self._take(), self._escapes)
                except StopIteration:
                    break
                parts[-1] = parts[-1][:-1] + _REPLACED["\n"]
                parts.append(following)
            text = "".join(parts)
        return text + "\n"

    def _take(self) -> str:
        """Return the next line, in which the csv.reader accepts all characters.

        Raises:
          StopIteration: there is no further line.
          _TooLong: the line, or the record so far, is too long.
          CorruptArchive: the archive is damaged here.
        """
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
        return text

    def restored(self, record: list[str]) -> list[str]:
        """Return the fields of a record, with the characters in place of their replacements."""
        # `str.translate` takes ten times as long.
        for replacement, char in self._replaced:
            record = [field.replace(replacement, char) for field in record]
        return record

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
                yield rejected(number, BROKEN_CSV, "after a quotation mark that is not closed")
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
    return records_of(RecordLines(stream, dialect), dialect)


def records_of(
    lines: RecordLines, dialect: Dialect, is_review: Callable[[list[str]], bool] | None = None
) -> Iterator[tuple[int, list[str]] | Rejected]:
    """Yield what `csv_records` yields.

    Args:
      lines: the lines of the file.
      dialect: the syntax of the file.
      is_review: (fields of a line) -> whether they are a review. None: a record of several lines is
        never taken for several records.
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
            if cause == RETURNS:
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
    if dialect.escapes:
        text = _without_escapes(text, dialect.escapes)
    # A new reader takes ten times as long, and most lines of texts have no quotes.
    if _QUOTE not in text and not dialect.skips_blanks:
        return text.split(dialect.separator)
    try:
        return next(_reader([text.replace("\0", _NUL).replace("\r", _CR)], dialect))
    except csv.Error:
        return []


def _without_escapes(line: str, escapes: str) -> str:
    """Return a line with one character in place of each backslash and a character of `escapes`."""
    if "\\" in line:
        for char in escapes:
            line = line.replace(f"\\{char}", _REPLACED[char])
    return line


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
        return RETURNS
    if r"\"" in line and not dialect.escapes:
        return "a quotation mark after a backslash"
    if f'" {dialect.separator}' in line:
        return "a blank between a quotation mark and a separator"
    if line.endswith('" '):
        return "a blank between a quotation mark and the end of the line"
    if error.endswith(f"expected after '{_QUOTE}'"):
        return "a single quotation mark within a quoted field"
    return error


def _open_quote(position: int, line: str) -> OpenQuote:
    return OpenQuote(*rejected(position, BROKEN_CSV, f"{_OPEN_QUOTE}: {line}"))


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
        elif isinstance(record, OpenQuote) and (count > 1 or not is_head):
            return
