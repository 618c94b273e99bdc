"""Detect how to read one file: its format, its columns and its labels.

The head of the file, 1 MiB of its content, decides. The labels are also read in samples of the
rest. `layouts` then chooses the scale of the labels for all files of an input together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from core.errors import InputError
from preprocessing.reading import encoding
from preprocessing.reading.choice import Chooser, survey
from preprocessing.reading.columns import (
    HEADERLESS,
    LABEL,
    Columns,
    Layout,
    MissingColumnsError,
    find_columns,
    names_of,
    set_columns,
)
from preprocessing.reading.contents import PARQUET_MAGIC
from preprocessing.reading.csv_layout import csv_layout, find_dialect
from preprocessing.reading.file_format import (
    UnknownFormatError,
    find_format,
    objects,
)
from preprocessing.reading.first_records import refuse_notation, refuse_twins
from preprocessing.reading.formats import csv, fasttext, parquet
from preprocessing.reading.labels import (
    STARS,
    are_sentiments,
    has_stars,
    labels_among,
    named_class,
)
from preprocessing.reading.open_files import open_bytes
from preprocessing.reading.records import (
    EACH_TASK,
    SENTIMENT_TASK,
    ReadOptions,
    printable,
)
from preprocessing.reading.samples import read_head, refuse_cr, sampled_lines
from preprocessing.reading.values import column_problem, is_filled, kind
from preprocessing.reading.widths import width_problem

_ROWS = 1_000
"""Rows of a Parquet file in which columns whose names differ only in case are compared."""
_EXAMPLE = 60
"""The maximum number of characters of a value in a message."""
_MESSAGE = 500
"""The maximum number of bytes of a message of a server."""


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
    records = list(_records(head, layout, is_head=True))
    refuse_notation(path, records, layout)
    refuse_twins(path, records, layout.columns or HEADERLESS, options)
    layout = survey(records, layout)
    if not options.reads_labels or options.task != SENTIMENT_TASK:
        return Inspection(path, replace(layout, label_scale=STARS), None)
    if layout.columns is None:
        parts = chain([head], () if is_all else sampled_lines(path))
        found = chain.from_iterable(_labels(lines, layout) for lines in parts)
        return Inspection(path, layout, frozenset(labels_among(found)))
    by_column = _labels_in_columns(path, records, is_all, layout)
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
    path: str, first: Sequence[Mapping[str, Any]], is_all: bool, layout: Layout
) -> dict[str, frozenset[str]]:
    """Return column of labels -> the labels in it, for the inspected records of a file.

    Args:
      path: path or URL of the file.
      first: the records in the head of the file; none of a Parquet file.
      is_all: whether they are all records.
      layout: the layout of the file.

    Raises:
      InputError: the file cannot be opened.
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

    inspect_labels(first)
    if layout.format != "parquet" and not is_all:
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
    if head.startswith(PARQUET_MAGIC):
        return "contains bytes that are not UTF-8: write its labels and texts as strings"
    return encoding.remedy(path, head)


def _records(lines: bytes, layout: Layout, is_head: bool = False) -> Iterable[Mapping[str, Any]]:
    """Return the records in the beginning of a file, or in lines from its middle."""
    if layout.format == "csv":
        return csv.sample(lines, layout, is_head=is_head)
    return objects(lines) if layout.format == "jsonl" else []


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
        if head.startswith(PARQUET_MAGIC) or len(head.strip()) > _MESSAGE or b"\n" in head.strip():
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
    if not head.startswith(PARQUET_MAGIC):
        refuse_cr(path, head)
    found = options.format if options.format != "auto" else find_format(path, head, options)
    if found == "csv":
        layout = csv_layout(path, head, options)
        problem = width_problem(path, head, layout, options)
        if problem:
            raise InputError(f"{path} {problem}")
        return layout
    if found == "jsonl":
        records = list(objects(head))
        columns = find_columns(path, names_of(records), options)
        _refuse_kinds(path, columns, options, partial(_kind_of_all, records))
        return Layout("jsonl", columns)
    if found == "parquet":
        with open_bytes(path) as stream:
            file = parquet.open_parquet(path, stream)
            columns = find_columns(path, file.schema_arrow.names, options)
            parquet.refuse_encrypted(path, file, list(filter(None, columns.roles.values())))
            parquet.refuse_joined(path, stream, file)
            if len(set(map(str.lower, file.schema_arrow.names))) < len(file.schema_arrow.names):
                refuse_twins(path, parquet.first_rows(file, _ROWS), columns, options)
            _refuse_kinds(path, columns, options, parquet.column_kinds(file).get)
            names = parquet.class_names(file, columns.label or "")
        return Layout("parquet", columns, class_names=names if _names_count(names, options) else ())
    return Layout("fasttext")


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
    roles = columns.roles
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
