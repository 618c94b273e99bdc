"""Detect how to read one file: its format, its columns and its labels.

The head of the file, 1 MiB of its content, decides. The labels are also read in samples of the
rest. `layouts` then chooses the scale of the labels for all files of an input together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

from core.errors import InputError
from preprocessing.reading import encoding
from preprocessing.reading.archives import (
    MAGIC_BYTES,
    CorruptArchive,
    DecompressedStream,
    compression,
)
from preprocessing.reading.choice import Chooser, survey
from preprocessing.reading.columns import (
    LABEL,
    ROLES,
    SEPARATORS,
    Columns,
    Dialect,
    Layout,
    MissingColumnsError,
    find_columns,
    set_columns,
)
from preprocessing.reading.contents import refuse_other_content
from preprocessing.reading.csv_layout import (
    csv_layout,
    find_dialect,
    find_late_header,
    regular_records,
    widest,
)
from preprocessing.reading.files import file_size, filter_command, open_bytes, open_raw
from preprocessing.reading.formats import csv, fasttext, parquet
from preprocessing.reading.formats.jsonl import parse_object
from preprocessing.reading.labels import (
    STARS,
    are_sentiments,
    has_stars,
    is_label,
    labels_among,
    named_class,
)
from preprocessing.reading.pieces import (
    TOO_LONG,
    Lines,
    Piece,
    decompress,
    split_lines,
    without_marks,
)
from preprocessing.reading.records import (
    EACH_TASK,
    SENTIMENT_TASK,
    ReadOptions,
    printable,
)
from preprocessing.reading.values import column_problem, is_filled, kind
from preprocessing.reading.widths import width_problem

FORMATS = ("fasttext", "csv", "jsonl", "parquet")
_HEAD = 1 << 20
_LINES_INSPECTED, _MOST = 20, 0.5
"""Lines that decide whether a file is fastText or JSON lines, and the fraction that is enough."""
_MAX_FIRST_LINE = 64 << 20
"""A first line that is too long is skipped up to this number of bytes, and the lines after it are
inspected. A file with a longer first line is refused."""
_SAMPLES = 8
"""Number of samples of a file after its head, at equal distances."""
_SAMPLE_BYTES = 1 << 16
_BZ2_SAMPLES = 3
_EXAMPLE = 60
"""The maximum number of characters of a value in a message."""
_MESSAGE = 500
"""The maximum number of bytes of a message of a server."""
_LAST_BZ2_BYTES = 1 << 20
"""Bytes at the end of a bz2 file that are read as the last sample. They contain the start of the
last block."""
_PARQUET = b"PAR1"
_LABEL_FIRST = (
    r"sed -E 's/^[[:blank:]]*(.*[^[:blank:]])?[[:blank:]]*(__label__[^[:space:]]+)(.*)/\2 \1\3/'"
)
"""The command that writes the last label of each line before its text."""
_TEXT_NAME = re.compile(r".*\.txt(\.\w+)?", re.IGNORECASE)
_CSV_NAME = re.compile(r".*\.(csv|tsv)(\.\w+)?", re.IGNORECASE)


class Inspection(NamedTuple):
    """The result of inspecting one file; `layouts` chooses the scale by the labels of all files.

    Attributes:
      path: the path of the file.
      layout: the layout of the file, without the final scale of its labels.
      labels: the labels in columns without the name of a rating, in the spelling of
        `labels.scale_label`. None if no inspected record has such a column, labels are not read, or
        the task is not sentiment, so that they have no scale.
      stars: the labels in each column with the name of a rating.
    """

    path: str
    layout: Layout
    labels: frozenset[str] | None
    stars: Mapping[str, frozenset[str]] = {}


class UnknownFormatError(InputError):
    """A file whose format is unknown."""


class Header(NamedTuple):
    """The header of a CSV file, which files without a header may share.

    Attributes:
      names: the names as they are in the file.
      separator: the character between them.
      path: the path of the file.
    """

    names: tuple[str, ...]
    separator: str
    path: str


def inspect(path: str, options: ReadOptions, header: Header | None = None) -> Inspection:
    """Return the layout and the labels of a file; its content decides what `options` does not set.

    Args:
      path: path or URL of the file.
      options: the options for reading it.
      header: the header of another file, if the file is CSV without a header.

    Raises:
      InputError: the file cannot be read, is of no known format, is not reviews, or lacks a column.
    """
    head, is_all = read_head(path)
    if header is None:
        layout = _detect_or_explain(path, head, options)
    else:
        names = [name.strip() for name in header.names]
        layout = Layout(
            "csv",
            find_columns(path, names, options),
            header=header.names,
            dialect=find_dialect(head, header.separator),
            header_of=header.path.rpartition("/")[2],
        )
    chosen = set_columns(layout.columns, options)
    layout = replace(layout, reads_labels=options.reads_labels, chosen=chosen)
    layout = survey(_records(head, layout, is_head=True), layout)
    if not options.reads_labels or options.task != SENTIMENT_TASK:
        return Inspection(path, replace(layout, label_scale=STARS), None)
    if layout.columns is None:
        parts = chain([head], () if is_all else sampled_lines(path))
        found = chain.from_iterable(_labels(lines, layout) for lines in parts)
        return Inspection(path, layout, frozenset(labels_among(found)))
    by_column = _labels_in_columns(path, head, is_all, layout)
    has_star_names = has_stars(layout.columns.label) and not options.label_map
    if has_star_names:
        by_column.setdefault(layout.columns.label or "", frozenset())
        layout = replace(layout, label_scale=STARS)
    stars = {name: labels for name, labels in by_column.items() if has_stars(name)}
    others = [labels for name, labels in by_column.items() if name not in stars]
    has_labels = others or not has_star_names
    return Inspection(path, layout, frozenset().union(*others) if has_labels else None, stars)


def _labels(lines: bytes, layout: Layout) -> Iterable[object]:
    """Return the labels in lines of a format without columns."""
    return fasttext.labels(lines) if layout.format == "fasttext" else []


def _labels_in_columns(
    path: str, head: bytes, is_all: bool, layout: Layout
) -> dict[str, frozenset[str]]:
    """Return column of labels -> the labels in it, for the inspected records of a file.

    If all records in the head of the file have stars, the rest of the file is not inspected.
    """
    found: defaultdict[str, set[Any]] = defaultdict(set)
    if layout.format == "parquet":
        found.update(parquet.labels(path, layout))
        own = (layout.columns and layout.columns.label) or ""
        if own in found:
            found[own] = {named_class(value, layout.class_names) for value in found[own]}
    chooser = Chooser(layout)

    def inspect_labels(records: Iterable[Mapping[str, Any]]) -> None:
        for record in records:
            name = chooser.columns(record).label
            if name:
                found[name].update(labels_among([record[name]]))

    inspect_labels(_records(head, layout, is_head=True))
    only_stars = has_stars(layout.columns and layout.columns.label) and all(map(has_stars, found))
    if layout.format != "parquet" and not is_all and not only_stars:
        for lines in sampled_lines(path):
            inspect_labels(_records(lines, layout))
    return {name: frozenset(labels_among(values)) for name, values in found.items()}


def encoding_remedy(path: str) -> str:
    """Return a clause with the encoding of a file that is not UTF-8, and the command to convert it.

    The encoding is guessed from the head of the file.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be read.
    """
    head, _ = read_head(path)
    if head.startswith(_PARQUET):
        return "contains bytes that are not UTF-8: write its labels and texts as strings"
    return encoding.remedy(path, head)


def _records(lines: bytes, layout: Layout, is_head: bool = False) -> Iterable[Mapping[str, Any]]:
    """Return the records in the beginning of a file, or in lines from its middle."""
    if layout.format == "csv":
        return csv.sample(lines, layout, is_head=is_head)
    return objects(lines) if layout.format == "jsonl" else []


def sampled_lines(path: str) -> Iterator[bytes]:
    """Yield complete lines from samples distributed over a file, including its end.

    The head of a sorted file has only one label. Nothing is yielded for a gzip or zstd file, which
    can only be read from its start.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be opened.
    """
    with open_raw(path) as raw:
        packed = compression(path, raw.read(MAGIC_BYTES))
    if packed not in (None, "bz2"):
        return
    size, samples = file_size(path), _BZ2_SAMPLES if packed else _SAMPLES
    with ThreadPoolExecutor(1) as pool:
        for number in range(1, samples + 1):
            is_last = number == samples
            start, end = size * number // samples - _SAMPLE_BYTES, size * number // samples
            if packed:
                start, end = size - _LAST_BZ2_BYTES if is_last else end, size
            piece = Piece(path, Layout("empty"), 0, max(1, start), end, is_bz2=bool(packed))
            found = split_lines(decompress(piece, pool), piece.start)
            lines = (without_marks(item.data) for item in found if isinstance(item, Lines))
            # A sample of a bz2 file is one block.
            yield from islice(lines, None if is_last else 1)


def _detect_or_explain(path: str, head: bytes, options: ReadOptions) -> Layout:
    """Return the result of `_detect`; the error about a file of one line names another cause.

    Servers send messages of any words in place of a file.

    Raises:
      MissingColumnsError: the columns are not found.
      UnknownFormatError: the format is unknown.
      InputError: see `inspect`.
    """
    try:
        return _detect(path, head, options)
    except (MissingColumnsError, UnknownFormatError) as error:
        if head.startswith(_PARQUET) or len(head.strip()) > _MESSAGE or b"\n" in head.strip():
            raise
        line = printable(head.strip())[:_EXAMPLE]
        message = (
            f"{error}; if its only line, '{line}', is a message of a server, download it again"
        )
        if isinstance(error, MissingColumnsError):
            raise MissingColumnsError(message, error.present) from error
        raise UnknownFormatError(message) from error


def _detect(path: str, head: bytes, options: ReadOptions) -> Layout:
    if not head.strip():
        return Layout("empty")
    if not head.startswith(_PARQUET):
        _refuse_cr(path, head)
    found = options.format if options.format != "auto" else find_format(path, head, options)
    if found == "csv":
        layout = csv_layout(path, head, options)
        problem = width_problem(path, head, layout, options)
        if problem:
            raise InputError(f"{path} {problem}")
        return layout
    if found == "jsonl":
        records = list(objects(head))
        present = list(dict.fromkeys(name for fields in records for name in fields))
        columns = find_columns(path, present, options)
        _refuse_kinds(path, columns, options, partial(_kind_of_all, records))
        return Layout("jsonl", columns)
    if found == "parquet":
        with open_bytes(path) as stream:
            file = parquet.open_parquet(path, stream)
            columns = find_columns(path, file.schema_arrow.names, options)
            parquet.refuse_encrypted(path, file, [name for name in columns[:3] if name])
            _refuse_kinds(path, columns, options, parquet.column_kinds(file).get)
            names = parquet.class_names(file, columns.label or "")
        return Layout("parquet", columns, class_names=names if _names_count(names, options) else ())
    return Layout("fasttext")


def _refuse_cr(path: str, head: bytes) -> None:
    """Check that the lines of a file do not end with CR alone.

    Args:
      path: the path of the file.
      head: the beginning of the file.

    Raises:
      InputError: they end with CR alone. Some programs add a final LF to such a file.
    """
    # A quoted field may contain line breaks.
    outside = re.sub(rb'"[^"]*"', b"", head).strip()
    if b"\r" not in outside or b"\n" in outside:
        return
    # A text may contain carriage returns, also that of the only line of a file.
    if not head.endswith(b"\n") or _are_alike(outside.split(b"\r")):
        raise InputError(
            f"{path} has lines that end with CR alone: convert it with `"
            + filter_command(path, r"tr '\r' '\n'")
            + "`, and read only the new file"
        )


def _are_alike(lines: Sequence[bytes]) -> bool:
    """Return whether most lines begin like the first, or have as many separators."""
    for start in (b"__label__", b"{"):
        if lines[0].startswith(start):
            return sum(line.startswith(start) for line in lines) > len(lines) / 2
    for mark in map(str.encode, SEPARATORS):
        number = lines[0].count(mark)
        if number and sum(line.count(mark) == number for line in lines) > len(lines) / 2:
            return True
    return False


def _names_count(names: Sequence[str], options: ReadOptions) -> bool:
    """Return whether the names of the numbers in a column of classes are read in their place.

    A mapping, the stars and the scales of sentiment apply to the numbers. But names such as
    `positive, negative` decide which number is which, because their order may be any.
    """
    if options.task == SENTIMENT_TASK:
        return not options.label_map and are_sentiments(names)
    return options.task == EACH_TASK


def _refuse_kinds(
    path: str, columns: Columns, options: ReadOptions, kind_of: Callable[[str], str | None]
) -> None:
    """Check that the columns of a file contain labels and texts.

    Args:
      path: the path of the file, for the error.
      columns: the columns that are read.
      options: the options for reading it.
      kind_of: (name of a column) -> what each of its values is that is neither, such as `a list`.

    Raises:
      InputError: a column contains lists, objects or durations.
    """
    roles = dict(zip(ROLES, columns[:3], strict=True))
    if not options.reads_labels:
        roles.pop(LABEL)
    for role, name in roles.items():
        what = kind_of(name) if name else None
        if name and what:
            raise InputError(column_problem(path, role, name, what))


def _kind_of_all(records: Sequence[Mapping[str, Any]], name: str) -> str | None:
    """Return what all values in a column of records are, with an example; None for others."""
    filled = [record[name] for record in records if is_filled(record.get(name))]
    if filled and all(map(kind, filled)):
        return f"{kind(filled[0])}, such as {printable(filled[0])[:_EXAMPLE]}"
    return None


def read_head(path: str) -> tuple[bytes, bool]:
    """Return the first complete lines of a file, and whether they are the whole file.

    Byte order marks at the starts of lines are left out. If a file begins with a MiB of blank lines
    or more, these are left out too. If a bz2 file of fastText or JSON lines is damaged at its
    start, the lines are those after the damage, as for the readers of these formats.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be read, is not reviews, or begins with a line that is too long.
    """
    head, damaged = bytearray(), False
    with open_bytes(path) as stream:
        try:
            _fill(head, stream)
            _skip_blank_lines(head, stream)
        except CorruptArchive:
            damaged = True
        refuse_other_content(path, bytes(head), isinstance(stream, DecompressedStream))
        is_all = len(head) < _HEAD and not damaged
        is_line = is_all or damaged or b"\n" in head or head.startswith(_PARQUET)
        try:
            start = b"" if is_line else bytes(head)
            if not is_line and not _skip_line(head, stream):
                _refuse_cr(path, start)
                raise InputError(
                    f"{path} begins with a line of {TOO_LONG}, and no other lines follow within "
                    f"{_MAX_FIRST_LINE:,} bytes: write each record on a line of its own, such as a "
                    "JSON object or a record of CSV, and read only the new file"
                )
        except CorruptArchive:
            damaged = True
    if damaged or (not is_all and b"\n" in head):
        del head[head.rfind(b"\n") + 1 :]
    if damaged and not head.strip():
        return _intact_lines(path), False
    return without_marks(bytes(head)), is_all


def _intact_lines(path: str) -> bytes:
    """Return the first intact lines of a damaged bz2 file, if they are fastText or JSON lines.

    The readers of all other files stop at the damage, so the result is empty for them.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be opened.
    """
    with open_raw(path) as raw:
        if compression(path, raw.read(MAGIC_BYTES)) != "bz2":
            return b""
    piece = Piece(path, Layout("empty"), end=file_size(path), is_bz2=True)
    with ThreadPoolExecutor(1) as pool:
        found = split_lines(decompress(piece, pool), 0)
        parts = (without_marks(item.data) for item in found if isinstance(item, Lines))
        lines = next(filter(bytes.strip, parts), b"")
    return lines if lines and _format_of_lines(lines)[1] >= _MOST else b""


def _fill(head: bytearray, stream: BinaryIO) -> None:
    while len(head) < _HEAD and (data := stream.read(_HEAD - len(head))):
        head += data


def _skip_blank_lines(head: bytearray, stream: BinaryIO) -> None:
    """Replace a head without a complete line behind its blank lines by the content after these."""
    while len(head) == _HEAD:
        start = len(head) - len(head.lstrip())
        if not start or b"\n" in head[start:]:
            return
        del head[:start]
        _fill(head, stream)


def _skip_line(head: bytearray, stream: BinaryIO) -> bool:
    """Replace a head that ends within the first line by the content after this line.

    The readers reject such a line, because it is too long.

    Returns:
      Whether lines follow.
    """
    size = len(head)
    while b"\n" not in head and size < _MAX_FIRST_LINE and (data := stream.read(_HEAD)):
        size += len(data)
        head[:] = data
    if b"\n" not in head:
        return False
    del head[: head.find(b"\n") + 1]
    _fill(head, stream)
    return bool(head.strip())


def find_format(path: str, head: bytes, options: ReadOptions) -> str:
    """Return the format of a file by its first lines.

    Args:
      path: path or URL of the file.
      head: the result of `read_head`.
      options: the options for reading it.

    Raises:
      UnknownFormatError: the format is unknown, or a plain text lacks the columns that are set.
      InputError: the file cannot be opened.
    """
    if head.startswith(_PARQUET):
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
    # In a table with a header they are a column, which the settings can name.
    if is_text or not _has_names(head):
        _refuse_late_labels(path, head)
    if is_text:
        return "fasttext"  # plain text, a review on each line
    if fraction:
        return line_format
    dialect, first = widest(head)
    has_columns = len(first) > 1 and (options.columns or _is_regular(head, dialect))
    if has_columns or _CSV_NAME.fullmatch(path) or find_late_header(head):
        return "csv"  # a missing column is reported later
    raise UnknownFormatError(
        f"{path} is of no known format, it starts with '{printable(head)[:60]}': set "
        f"data.format to one of {', '.join(FORMATS)} (fastText: __label__ and a label before each "
        "text; JSON: one object a line; CSV: see data.columns)"
    )


def _refuse_late_labels(path: str, head: bytes) -> None:
    """Check that the labels of fastText begin their lines, if a file has such labels.

    fastText itself finds a label anywhere in a line. Here it would be a part of the text.

    Args:
      path: path or URL of the file.
      head: the result of `read_head`, of a file that is no CSV file with known columns.

    Raises:
      InputError: they do not.
    """
    lines = _first_lines(head)
    if sum(fasttext.LATE_LABEL.search(line) is not None for line in lines) < _MOST * len(lines):
        return
    command = filter_command(path, _LABEL_FIRST)
    raise InputError(
        f"{path} has labels with __label__ that do not begin their lines: write each of them "
        f"before its text, such as with `{command}`, and read only the new file"
    )


def _has_names(head: bytes) -> bool:
    """Return whether a file is a table whose first record has no label of fastText."""
    dialect, first = widest(head)
    return len(first) > 1 and "__label__" not in "".join(first) and _is_regular(head, dialect)


def _is_regular(head: bytes, dialect: Dialect) -> bool:
    """Return whether most records of a file have as many fields as the first, and at least three.

    Other texts with commas are no CSV.
    """
    regular = regular_records(head, dialect)
    return regular > 2 and 2 * regular > sum(1 for _ in csv.head_records(head, dialect))


def _begins_with_a_header(path: str, head: bytes, options: ReadOptions) -> bool:
    """Return whether the first line is the header of a CSV file with known columns.

    The first of its fields may have many lines of another format.
    """
    first = _first_lines(head)[0]
    if fasttext.LINE.fullmatch(first) or first.lstrip().startswith(b"{"):
        return False
    try:
        return csv_layout(path, head, options).header is not None
    except InputError:
        return False


def _begin_with_labels(head: bytes, layout: Layout, options: ReadOptions) -> bool:
    """Return whether the first lines of a text are records of CSV without a header.

    Each of them has a label and as many fields as the first one. Labels that may be any text are
    recognised only before tabs, which texts rarely contain. A blank follows a comma in a text.
    """
    records = list(islice(csv.head_records(head, layout.dialect), _LINES_INSPECTED))
    if {len(fields) for fields in records} != {len(records[0])}:
        return False
    return layout.dialect.separator == "\t" or all(
        is_label(label, options) and not after[:1].isspace() for label, after, *_ in records
    )


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
