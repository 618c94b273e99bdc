"""Explain from the first records of a CSV file why its columns are not found.

Either the names in its header are unknown, and the error of `columns.find_columns` lists them, or
the file has one of the problems here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.errors import InputError
from preprocessing.reading import encoding
from preprocessing.reading.columns import find_columns
from preprocessing.reading.labels import is_label
from preprocessing.reading.records import ReadOptions, printable, shown_names
from preprocessing.reading.shell_commands import filter_command, header_command
from preprocessing.reading.widths import quoted_lines_problem

_LONGEST_NAME, _MOST_NAMES = 60, 20
_NUMBER = re.compile(r"[-+]?[\d.,:/ -]*\d[\d.,:/ -]*")
_SENTENCE = re.compile(r"\s*\S+\s+\S+\s.*\w{4}[.!]\s*", re.DOTALL)
"""Three words or more that end like a sentence, unlike a name such as `Customer order no.`"""
_SPACED = re.compile(r'"\s+[,;|]|[,;|]\s+"')
_CONTROL = re.compile(r"[\x01-\x08\x0e-\x1f]")
"""The characters with which Hive and others separate columns."""
_MARK = "\ufeff".encode().decode("cp1252")
"""A byte order mark of UTF-8 that was read as Windows-1252 and written again."""
_UNDECODED = re.compile("[\udc80-\udcff]")
"""A byte that is not UTF-8, as the error handler "surrogateescape" decodes it."""


def problem(
    path: str, records: Sequence[Sequence[str]], separator: str, head: bytes, options: ReadOptions
) -> str | None:
    """Return a clause with the problem of a header and the remedy; None if the names are unknown.

    Args:
      path: path or URL of the file.
      records: the first records of the file, at least one.
      separator: the character between the fields.
      head: the first lines of the file.
      options: the options for reading the file.

    Raises:
      InputError: the file cannot be opened.
    """
    first = records[0]
    if any(map(_UNDECODED.search, first)):
        return encoding.remedy(path, head)
    line = head.lstrip().partition(b"\n")[0].decode("utf-8", "replace")
    if any('"' in field for field in first) and (found := _SPACED.search(line)):
        return (
            "has white space between a quotation mark and a separator, in which CSV has none: "
            f"`{printable(found[0])}` in the header {printable(line)}. Write the file without this "
            "white space, and read only the new file"
        )
    if quoted := quoted_lines_problem(path, records):
        return quoted
    if syntax := other_syntax(first, options):
        return syntax
    control = _CONTROL.search(first[0]) if len(first) == 1 else None
    if control:
        return (
            f"has no header, and separates its columns with `{printable(control[0])}`, as its "
            f"first record {printable(first[0])} shows: write it as CSV, with the names of the "
            'columns, commas and the quotation mark ", and read only the new file'
        )
    if not _is_data(first, records[1:]):
        return None
    same_width = [fields for fields in records if len(fields) == len(first)]
    if len(first) in (2, 3) and all(is_label(fields[-1], options) for fields in same_width):
        names = ["title", "text", "label"][-len(first) :]
        what = f"has no header, and its label is the last of {len(first)} columns, not the first"
    else:
        names = _names(same_width, options)
        what = f"has no header with the names of its columns ({len(first)})"
    if len(names) > _MOST_NAMES:
        return (
            f"{what}: its first record is {shown_names(first)}. Write a line with the names before "
            "it, `label` and `text` for those to read, and read only the new file"
        )
    command = header_command(path, names, separator)
    return (
        f"{what}: its first record is {shown_names(first)}. Add the names, such as with "
        f"`{command}`, and read only the new file"
    )


def begins_a_table(records: Sequence[tuple[int, Sequence[str]]]) -> bool:
    """Return whether the first record has several fields, each with a text, as a header has.

    More than half of all records have as many fields.

    Args:
      records: the line and the fields of the first records of a file that are not blank.
    """
    if not records:
        return False
    _, first = records[0]
    alike = sum(len(fields) == len(first) for _, fields in records)
    return len(first) > 1 and all(map(str.strip, first)) and 2 * alike > len(records)


def late_header(records: Sequence[tuple[int, Sequence[str]]]) -> tuple[int, Sequence[str]] | None:
    """Return the line of a header behind a title or other lines, and the header; None without one.

    The lines before it have fewer fields with a text than the header, and all records behind it
    have as many fields.

    Args:
      records: the line and the fields of the first records of a file that are not blank.
    """
    widths = [len(fields) for _, fields in records]
    width = widths[-1] if widths else 0
    for number, (line, fields) in enumerate(records[:-1]):
        if sum(bool(field.strip()) for field in fields) < width:
            continue
        others = [after for _, after in records[number + 1 :]]
        is_header = number > 0 and width > 1 and not _is_data(fields, others)
        return (line, fields) if is_header and set(widths[number:]) == {width} else None
    return None


def late_problem(path: str, line: int, names: Sequence[str]) -> str:
    """Return a clause with the remedy for the result of `late_header`.

    Args:
      path: path or URL of the file.
      line: the line of the header, from 1.
      names: the names in the header.

    Raises:
      InputError: the file cannot be opened.
    """
    before = "a line" if line == 2 else f"{line - 1:,} lines"
    command = filter_command(path, f"tail -n +{line}")
    return (
        f"has {before} before its header, which is in line {line:,}: {shown_names(names)}. Write "
        f"the file without {'it' if line == 2 else 'them'}, such as with `{command}`, and read "
        "only the new file"
    )


def other_syntax(first: Sequence[str], options: ReadOptions) -> str | None:
    """Return a clause with the problem of a header whose names are known but not in CSV syntax.

    Args:
      first: the fields of the first record of a file.
      options: the options for reading the file.

    Returns:
      The clause; None for any other header.
    """
    if "".join(first).startswith(_MARK):
        return (
            f"begins with {_MARK}, a byte order mark that was read in another encoding, and its "
            "other letters beyond ASCII may be damaged alike: export it again as UTF-8, or remove "
            "these characters, and read only the new file"
        )
    filled = [field.strip() for field in first if field.strip()]
    for mark in dict.fromkeys(re.findall(r"[^\w\s.-]", "".join(first))):
        names = [name.strip() for field in first for name in field.split(mark) if name.strip()]
        try:
            find_columns("", names, options)
        except InputError:
            continue
        shown = printable(", ".join(filled))
        if len(filled) == len(names) and not mark.isprintable():
            return (
                f"has the invisible character {printable(mark)} in its header, {shown}: write the "
                "header without it, and read only the new file"
            )
        if len(filled) == 1 < len(names):
            what = f"separates its columns with `{printable(mark)}`"
            remedy = 'write it as CSV, with commas and the quotation mark "'
            if len(first) > 1:
                what += ", and ends its lines with other separators"
                remedy = "write the lines without the separators at their ends"
            return f"{what}, as its header {shown} shows: {remedy}, and read only the new file"
        if filled == [f"{mark}{name}{mark}" for name in names]:
            return (
                f"quotes its fields with `{printable(mark)}`, as its header {shown} shows: write "
                'it as CSV, with commas and the quotation mark ", and read only the new file'
            )
    return None


def _is_data(fields: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Return whether a record is a review: names of columns are neither numbers nor texts.

    Nor do other records repeat one, as records repeat a label. In a survey, those who chose an
    answer repeat the name of its column, and the others have an empty field.

    Args:
      fields: the record.
      others: the records behind it.
    """
    if list(fields) == [str(number) for number in range(len(fields))]:
        return False  # pandas writes numbers as the names of unnamed columns
    # Programs that align the columns of a table pad the names of a header with blanks.
    names = [field.strip() for field in fields]
    if any(len(one) > _LONGEST_NAME or "\n" in one or _NUMBER.fullmatch(one) for one in names):
        return True
    different = [other for other in others if list(other) != list(fields)]
    columns = zip(names, *(other for other in different if len(other) == len(fields)), strict=True)
    if len(different) > 1 and any(name in values and all(values) for name, *values in columns):
        return True
    # The names in a survey may be sentences too, such as `Please rate our service.`
    sentences = [index for index, field in enumerate(fields) if _SENTENCE.fullmatch(field)]
    return bool(sentences) and all(
        any(_SENTENCE.fullmatch(field) for other in others for field in other[index : index + 1])
        for index in sentences
    )


def _names(records: Sequence[Sequence[str]], options: ReadOptions) -> list[str]:
    """Return names for the columns: `label` for the first with labels, `text` for the longest.

    `text` is another column than `label`, and has other values than numbers. Of two columns the
    other one is `label` if it repeats a value.
    """
    columns = list(zip(*records, strict=True))
    names = [f"column{number}" for number in range(1, len(columns) + 1)]
    lengths = [
        0 if all(map(_NUMBER.fullmatch, column)) else sum(map(len, column)) for column in columns
    ]
    for index, column in enumerate(columns):
        if all(is_label(field, options) for field in column):
            names[index] = "label"
            lengths[index] = 0
            break
    if any(lengths):
        text = lengths.index(max(lengths))
        names[text] = "text"
        other = columns[1 - text] if len(columns) == 2 else ()
        if "label" not in names and len(set(other)) < len(other):
            names[1 - text] = "label"
    return names
