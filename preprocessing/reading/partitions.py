"""Find labels that only the names of folders have, such as `rating=1/part-0.parquet`.

Spark and Hive write a column by which they partition a table into the names of the folders, and not
into the files. The readers see one file at a time, without its folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from core.errors import InputError
from preprocessing.reading import tables
from preprocessing.reading.columns import (
    CONVENTIONS,
    GENERAL,
    LABEL,
    MissingColumnsError,
    find_columns,
)
from preprocessing.reading.detect import Inspection
from preprocessing.reading.files import SourceFile
from preprocessing.reading.listing import listed
from preprocessing.reading.look import read_table
from preprocessing.reading.records import ReadOptions, printable
from preprocessing.reading.shell_commands import python_command, string_literal

_PARTITION = re.compile(r"([^=/]+)=([^/]*)")
_LABELS = frozenset(names.label for names in (*CONVENTIONS, *GENERAL))
_CERTAIN = ("label", "sentiment")
"""Names of columns that are labels, whatever the names of the folders are."""
_EXPORT = (
    "import pyarrow.dataset as d, pyarrow.parquet as pq; "
    'pq.write_table(d.dataset({}, partitioning="hive").to_table(), "NEW_FILE")'
)


def refuse_partitions(
    files: Sequence[SourceFile], tried: Sequence[Inspection | InputError], options: ReadOptions
) -> list[Inspection | InputError]:
    """Return the results of inspecting files, with errors for labels in the names of folders.

    The error replaces the one about missing columns, and also a result in which another column is
    the label, unless the settings name it.

    Args:
      files: the files of an input.
      tried: the result of `detect.inspect` for each of them, or the error that it raised.
      options: the options for reading them.
    """
    own = options.columns.get(LABEL)
    found = [_partitions(file.path, own) for file in files]
    values: dict[str, dict[str, None]] = {}
    for of_file in found:
        for key, (_, folder) in of_file.items():
            values.setdefault(key, {})[folder] = None
    return [
        _of_file(file.path, item, of_file, values, options) if of_file else item
        for file, item, of_file in zip(files, tried, found, strict=True)
    ]


def _partitions(path: str, own: str | None) -> dict[str, tuple[str, str]]:
    """Return the name of each label in the folders of a path -> (the folder above, the folder).

    Args:
      path: the path of a file.
      own: the column that the settings name as the label; None: the names of known datasets.
    """
    found = {}
    for folder in tables.parents(path):
        above, _, name = folder.rpartition("/")
        match = _PARTITION.fullmatch(name)
        if match and (match[1] == own if own else match[1].lower() in _LABELS):
            found[match[1]] = (above, name)
    return found


def _of_file(
    path: str,
    item: Inspection | InputError,
    partitions: Mapping[str, tuple[str, str]],
    values: Mapping[str, Mapping[str, None]],
    options: ReadOptions,
) -> Inspection | InputError:
    """Return the result for a file in folders with the names of labels."""
    for key, (above, _) in partitions.items():
        if isinstance(item, MissingColumnsError):
            try:
                find_columns(path, [*item.present, key], options)
            except InputError:
                continue
            return InputError(_message(path, item.present, key, above, values[key], ""))
        if isinstance(item, InputError) or not options.reads_labels or len(values[key]) < 2:
            continue
        label = item.layout.columns.label if item.layout.columns else None
        if not label or label.lower() in _CERTAIN or options.columns.get(LABEL):
            continue
        table = read_table(path, options, item.layout)
        present = table.names if table else [label]
        if key.lower() not in map(str.lower, present):
            other = f"; if the label is `{printable(label)}`, set data.columns.label to it"
            return InputError(_message(path, present, key, above, values[key], other))
    return item


def _message(
    path: str,
    present: Sequence[str],
    key: str,
    above: str,
    folders: Mapping[str, None],
    other: str,
) -> str:
    """Return the message about a file without the column of a label.

    Args:
      path: the path of the file.
      present: the names of its columns.
      key: the name of the missing column.
      above: the folder of the folders with the labels.
      folders: the names of these folders.
      other: a clause with another remedy, or an empty text.
    """
    how = ""
    if path.lower().endswith(".parquet"):
        command = python_command(_EXPORT.format(string_literal(above)))
        how = f", such as with `{command}`"
    return (
        f"{path} has no column `{printable(key)}`, which only the names of its folders have "
        f"({listed(list(folders))}), as Spark and Hive write them: write the column into the files"
        f"{how}, and read only the new ones{other}"
    )
