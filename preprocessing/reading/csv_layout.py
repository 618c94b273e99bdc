"""Find the columns, the header and the dialect of a CSV file by its first records."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from core.errors import InputError
from preprocessing.reading import header
from preprocessing.reading.columns import HEADERLESS, SEPARATORS, Dialect, Layout, find_columns
from preprocessing.reading.formats.csv_records import csv_records, head_records
from preprocessing.reading.labels import is_headerless, is_label
from preprocessing.reading.records import SENTIMENT_TASK, ReadOptions, Rejected

_RECORDS_INSPECTED = 20
"""Records in which a header is looked for."""
_QUOTE_ESCAPES = '\\"'
_LINE_ESCAPES, _USUAL, _MISSING = r"\bfnrtv", r"\nrt", "0N"
"""The characters behind a backslash in the tables of MySQL, PostgreSQL, Miller and jq, where no
field has a line break. Without one of _USUAL the others are no escapes, as in `good\\bad`. Those of
_MISSING are a missing value and a NUL."""
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?\d*[.,]?\d+(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)


def csv_layout(path: str, head: bytes, options: ReadOptions) -> Layout:
    """Return the layout of a CSV file: its columns, its dialect, and its header if it has one.

    The separator is the first one with which the columns are found.

    Args:
      path: path or URL of the file.
      head: the result of `samples.read_head`.
      options: the options for reading it.

    Raises:
      InputError: the columns are not found, or the file cannot be opened.
    """
    for dialect in _dialects(head):
        first = next(head_records(head, dialect), [])
        with contextlib.suppress(InputError):
            return _with_header(path, first, dialect, options)
        if (
            not options.columns
            and dialect.separator in ",\t"
            and (is_headerless(first, options) or _repeats_a_label(first, head, dialect, options))
            and _are_reviews(head, dialect, options)
            and not _has_other_separator(head, dialect)
        ):
            title = HEADERLESS.title if len(first) == 3 else None
            return Layout("csv", HEADERLESS._replace(title=title), dialect=dialect)
    dialect, first = widest(head)
    late = find_late_header(head)
    # A header with another separator is one field, like a title before a table.
    if late and not header.other_syntax(first, options):
        raise InputError(f"{path} {header.late_problem(path, *late)}")
    records = list(islice(head_records(head, dialect), _RECORDS_INSPECTED))
    problem = header.problem(path, records, dialect.separator, head, options) if records else None
    if problem:
        raise InputError(f"{path} {problem}")
    return _with_header(path, first, dialect, options)


def _with_header(path: str, first: Sequence[str], dialect: Dialect, options: ReadOptions) -> Layout:
    """Return the layout of a CSV file whose first record is its header.

    Raises:
      InputError: the columns are not found in the header.
    """
    columns = find_columns(path, [name.strip() for name in first], options)
    return Layout("csv", columns, header=tuple(first), dialect=dialect)


def find_late_header(head: bytes) -> tuple[int, Sequence[str]] | None:
    """Return the line of a header behind a title or other lines, and the header; None without one.

    Args:
      head: the result of `samples.read_head`, of a CSV file without known columns in its first
        record.
    """
    tables = []
    for dialect in _dialects(head):
        records = islice(csv_records(io.BytesIO(head), dialect), _RECORDS_INSPECTED)
        tables.append([item for item in records if not isinstance(item, Rejected) and item[1]])
    if any(map(header.begins_a_table, tables)):
        # With another separator the texts could look like a late header and its table.
        return None
    return next(filter(None, map(header.late_header, tables)), None)


def _repeats_a_label(
    first: Sequence[str], head: bytes, dialect: Dialect, options: ReadOptions
) -> bool:
    """Return whether the first record begins with a label, which may be any text.

    Other records begin with the same one then, and none with the name of a column.
    """
    if options.task == SENTIMENT_TASK or len(first) not in (2, 3) or not first[0].strip():
        return False
    records = islice(head_records(head, dialect), 1, None)
    return any(len(record) == len(first) and record[0] == first[0] for record in records)


def _are_reviews(head: bytes, dialect: Dialect, options: ReadOptions) -> bool:
    """Return whether the first records may be reviews: a label first, and a text last.

    The numbers of rows are no labels, because they all differ, and numbers alone are no texts.
    Lines with 0, 1, 2 and so on are a list of the classes of another file, not ratings.
    """
    records = list(islice(head_records(head, dialect), _RECORDS_INSPECTED))
    records = [record for record in records if len(record) == len(records[0])]
    if len(records) > 1 and all(_NUMBER.fullmatch(record[-1].strip()) for record in records):
        return False
    first = [record[0].strip() for record in records]
    if len(first) > 2 and first == [str(number) for number in range(len(first))]:
        return False
    are_numbers = all(map(str.isdecimal, first)) and len(set(first)) == len(first)
    return not are_numbers or all(is_label(field, options) for field in first)


def _has_other_separator(head: bytes, dialect: Dialect) -> bool:
    """Return whether a file begins with a record that is only valid with another separator.

    With a wrong separator the first valid record may be a line of a text.
    """
    return not _width(head, dialect) and any(_begins_a_table(head, one) for one in _dialects(head))


def _begins_a_table(head: bytes, dialect: Dialect) -> bool:
    """Return whether the first record of a file is valid, and has as many fields as most others."""
    return _width(head, dialect) > 1 and is_regular(head, dialect)


def _width(head: bytes, dialect: Dialect) -> int:
    """Return the number of fields in the first record of a file, or 0 if it is not valid."""
    record = next(csv_records(io.BytesIO(head.lstrip(b"\r\n")), dialect), (1, []))
    return 0 if isinstance(record, Rejected) else len(record[1])


def _dialects(head: bytes) -> Iterator[Dialect]:
    """Yield the possible dialects of a CSV file, the most frequent one first."""
    for separator in SEPARATORS:
        plain = Dialect(separator, quoted=False, escapes=f"{_LINE_ESCAPES}{separator}")
        if separator in "\t|" and _has_line_escapes(head, plain):
            yield plain
            continue
        possible = (
            one._replace(skips_blanks=one.quoted and _has_blanks(head, one))
            for one in _quotings(head, separator)
        )
        yield max(possible, key=lambda one: _regularity(head, one))


def _quotings(head: bytes, separator: str) -> Iterator[Dialect]:
    """Yield the possible dialects with a separator, of equally good ones the right one first."""
    dialect = Dialect(separator)
    escaped, bare = [], []
    if b"\\" + separator.encode() in head or b"\\\n" in head:
        every = dialect._replace(escapes=f"{_QUOTE_ESCAPES}{separator}\n")
        escaped.append(every)
        # MySQL escapes separators and line breaks, but no quotes, in fields without quotes.
        bare.append(every._replace(quoted=False))
    if b'\\"' in head:
        escaped.append(dialect._replace(escapes=_QUOTE_ESCAPES))
    yield from [*escaped, dialect] if _has_quote_escapes(head, separator) else [dialect, *escaped]
    # Quoted fields without separators are as regular without quoting.
    yield from bare
    if separator == "\t" and b'"' in head:
        # Spreadsheets write quoted fields, and Amazon's own open data has lone quotes.
        yield dialect._replace(quoted=False)


def _has_quote_escapes(head: bytes, separator: str) -> bool:
    """Return whether all quotes within fields are behind backslashes.

    Those of fields without quotes around them do not change the number of fields.
    """
    outside = re.escape(separator.encode()) + rb"\r\n"
    within = re.compile(rb'[^%b]"[^%b]' % (outside, outside))
    return b'\\"' in head and not within.search(head.replace(b'\\"', b""))


def _has_line_escapes(head: bytes, dialect: Dialect) -> bool:
    """Return whether the fields have escapes such as `\\n` in place of line breaks and separators.

    Databases write such tables, with tabs or `|`. No field is quoted, and each backslash begins an
    escape.

    Args:
      head: the beginning of the file.
      dialect: the dialect with these escapes.
    """
    found = {chr(code) for (code,) in set(_ESCAPE.findall(head))}
    if not found & set(_USUAL) or not found <= {*dialect.escapes, *_MISSING}:
        return False
    # A field may be in quotes, or end with a backslash.
    if _regularity(head, dialect) < _regularity(head, Dialect(dialect.separator)):
        return False
    if b'"' not in head:
        return True
    # A quote in a field that does not begin with one. No field begins behind an escaped separator.
    inside = rb"[^%b\n]" % re.escape(dialect.separator).encode()
    lone_quote = rb'(?m:^|%b)(?!")%b+"' % (re.escape(dialect.separator).encode(), inside)
    return re.search(lone_quote, _ESCAPE.sub(b"", head)) is not None


def find_dialect(head: bytes, separator: str) -> Dialect:
    """Return the dialect of a CSV file whose separator is known.

    Args:
      head: the result of `samples.read_head`.
      separator: one of `columns.SEPARATORS`.
    """
    return next(dialect for dialect in _dialects(head) if dialect.separator == separator)


def _has_blanks(head: bytes, dialect: Dialect) -> bool:
    """Return whether blanks precede the quotes of the header, or of half of the records.

    Two quotes in place of one are a quote within a field.
    """
    before_quotes = re.compile(re.escape(dialect.separator.encode()) + rb' +"(?!")')
    found = before_quotes.findall(head)
    if not found:
        return False
    records = _regular_records(head, dialect._replace(skips_blanks=True))
    first = head.lstrip().partition(b"\n")[0]
    return before_quotes.search(first) is not None or len(found) >= max(1, records / 2)


@lru_cache(maxsize=16)  # the search for columns, for a late header and for the widest record
def _widths(head: bytes, dialect: Dialect) -> tuple[int, ...]:
    """Return the number of fields of each record."""
    return tuple(len(fields) for fields in head_records(head, dialect))


def _regularity(head: bytes, dialect: Dialect) -> tuple[int, int]:
    """Return the number of regular records, and the negative number of all, to compare dialects."""
    return _regular_records(head, dialect), -len(_widths(head, dialect))


def _regular_records(head: bytes, dialect: Dialect) -> int:
    """Return the number of records with as many fields as the first one."""
    widths = _widths(head, dialect)
    return widths.count(widths[0]) if widths else 0


def is_regular(head: bytes, dialect: Dialect) -> bool:
    """Return whether most records of a file have as many fields as the first, and at least three.

    Other texts with commas are no CSV.

    Args:
      head: the result of `samples.read_head`, of a CSV file.
      dialect: its dialect.
    """
    regular = _regular_records(head, dialect)
    return regular > 2 and 2 * regular > len(_widths(head, dialect))


def fits_header(head: bytes, dialect: Dialect) -> bool:
    """Return whether most records behind the first have as many fields as it has.

    Args:
      head: the result of `samples.read_head`, of a CSV file with a header.
      dialect: its dialect.
    """
    regular = _regular_records(head, dialect) - 1
    return regular > 0 and 2 * regular >= len(_widths(head, dialect)) - 1


def widest(head: bytes) -> tuple[Dialect, list[str]]:
    """Return the dialect whose first record has the most fields, and this record.

    A dialect whose first record begins a table precedes the others.

    Args:
      head: the result of `samples.read_head`, of a CSV file.
    """
    found = [(dialect, next(head_records(head, dialect), [])) for dialect in _dialects(head)]
    return max(found, key=lambda item: (_begins_a_table(head, item[0]), len(item[1])))
