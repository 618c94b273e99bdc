"""Check by the first records of a file that its columns contain what they seem to contain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core.errors import InputError
from preprocessing.reading.columns import HEADERLESS, LABEL, Columns, Layout
from preprocessing.reading.records import ReadOptions, printable
from preprocessing.reading.shell_commands import filter_command
from preprocessing.reading.values import is_filled

_MOST, _LEAST = 0.9, 8
"""The fraction of the texts in one notation that are nearly all, and the least number of texts."""
_EXAMPLE = 60
"""The maximum number of characters of a text in a message."""
_REWRITE = (
    "python3 -c \"import csv, sys; sys.stdin.reconfigure(encoding='utf-8-sig'); csv.writer("
    'sys.stdout).writerows(csv.reader(sys.stdin, delimiter=chr({}), quotechar=chr({})))"'
)
"""The command that writes CSV with another separator and quotation mark as usual."""
_BYTES = re.compile(r"b(['\"]).*\1", re.DOTALL)
_LABELLED = re.compile(r"__label__\S+\s.*", re.DOTALL)
_LIST = re.compile(r"\[\s*(['\"]).*\1\s*\]", re.DOTALL)
_FORMULA = re.compile(r'=".*"', re.DOTALL)
_SPACED = re.compile(r'\s+".*"', re.DOTALL)
_QUOTES = {"'": "single quotation marks", "`": "backquotes"}
"""Quotation mark of other programs -> its name. Typographic ones may belong to the texts."""


def refuse_notation(path: str, records: Sequence[Mapping[str, Any]], layout: Layout) -> None:
    """Check that the texts of a file are not in the notation of a program.

    It would be a part of each text, and a text without it would be another one for the model.

    Args:
      path: path or URL of the file.
      records: its first records, column -> value.
      layout: its layout, with columns.

    Raises:
      InputError: they are.
    """
    column = (layout.columns or HEADERLESS).text
    texts = [text for record in records if isinstance(text := record.get(column), str) and text]

    def are(pattern: re.Pattern[str]) -> bool:
        return _nearly_all(texts, pattern)

    if are(_BYTES):
        problem = (
            "are in the notation of Python's bytes: write texts, such as with pandas' "
            "`.str.decode('utf-8')` before the file is written"
        )
    elif are(_LABELLED):
        problem = "begin with labels of fastText: write each label into a column of its own"
    elif are_lists(texts):
        problem = "are lists: write one text into each field, as pandas' `explode` does with lists"
    elif layout.format != "csv":
        return
    elif are(_FORMULA):
        problem = "are formulas of a spreadsheet: export its values"
    elif are(_SPACED):
        problem = (
            "have white space before their quotation marks, in which CSV has none: write the file "
            "without it"
        )
    else:
        patterns = {mark: re.compile(f"{mark}.+{mark}", re.DOTALL) for mark in _QUOTES}
        quote = next(filter(lambda mark: are(patterns[mark]), _QUOTES), "")
        if not quote:
            return
        script = _REWRITE.format(ord(layout.dialect.separator), ord(quote))
        command = filter_command(path, script)
        problem = f'are within {_QUOTES[quote]}: write those of CSV, ", such as with `{command}`'
    raise InputError(
        f"{path}: the texts in the column `{printable(column)}` {problem}, and read only the new "
        f"file; the first one: {printable(texts[0])[:_EXAMPLE]}"
    )


def are_lists(texts: Sequence[str]) -> bool:
    """Return whether nearly all texts are lists as Python writes them, such as `['a', 'b']`.

    Args:
      texts: the first texts of a column.
    """
    return _nearly_all(texts, _LIST)


def _nearly_all(texts: Sequence[str], pattern: re.Pattern[str]) -> bool:
    number = sum(pattern.fullmatch(text.rstrip()) is not None for text in texts)
    return number >= max(_LEAST, _MOST * len(texts))


def refuse_twins(
    path: str, records: Iterable[Mapping[str, Any]], columns: Columns, options: ReadOptions
) -> None:
    """Check that no record has two values in columns whose names differ only in case.

    Only one of them would be read. Records that fill one of the columns each are read by both.

    Args:
      path: path or URL of the file.
      records: its first records, column -> value.
      columns: the columns that are read.
      options: the options for reading it. A column that is set has no twin.

    Raises:
      InputError: a record has.
    """
    read = {
        name.lower(): (role, name)
        for role, name in columns.roles.items()
        if name and role not in options.columns and (role != LABEL or options.reads_labels)
    }
    for record in records:
        for other in record:
            role, name = read.get(other.lower(), ("", other))
            if name == other or not is_filled(record[other]) or not is_filled(record.get(name)):
                continue
            if record[name] != record[other]:
                raise InputError(
                    f"{path} has the columns `{printable(name)}` and `{printable(other)}` with "
                    f"different values in one record: set data.columns.{role} to the one to read, "
                    "or remove the other"
                )
