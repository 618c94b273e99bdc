"""Refuse lines with labels that are neither fastText nor CSV, whose labels would be text.

Published sets have such lines, such as `1 a good film`, `LOC:city What is the capital of Peru ?`
(TREC) and `It was a loss.@negative`. Each message has the command that writes the lines as fastText
does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.errors import InputError
from preprocessing.reading.formats import fasttext
from preprocessing.reading.records import printable
from preprocessing.reading.shell_commands import filter_command

_MOST = 0.5
"""The fraction of the lines with `__label__` that is enough."""
_LABEL_FIRST = (
    r"sed -E 's/^[[:blank:]]*(.*[^[:blank:]])?[[:blank:]]*(__label__[^[:space:]]+)(.*)/\2 \1\3/'"
)
"""The command that writes the last label of each line before its text."""
_LABEL = r"(?P<label>positive|negative|neutral|pos|neg|[-+]?\d|(?-i:[A-Z]+:[a-z]+))"
_BEFORE = re.compile(rf"{_LABEL}(?P<mark>[ \t]+)\S.*", re.IGNORECASE | re.DOTALL)
_BEHIND = re.compile(rf".*\S(?P<mark>[ \t]*[@|,;:#\t][ \t]*){_LABEL}", re.IGNORECASE | re.DOTALL)
_LEAST = 5
"""The least number of lines that show a label beside each text without `__label__`."""
_ALMOST_ALL = 0.99
"""The fraction of the lines of a sorted file that is enough."""
_SHOWN = 60


def refuse_late_labels(path: str, lines: Sequence[bytes]) -> None:
    """Check that the labels of fastText begin their lines, if a file has such labels.

    fastText itself finds a label anywhere in a line. Here it would be a part of the text.

    Args:
      path: path or URL of the file.
      lines: the first lines of a file that is no CSV file with known columns.

    Raises:
      InputError: they do not, or are not written as fastText writes them.
    """
    if sum(fasttext.LATE_LABEL.search(line) is not None for line in lines) >= _MOST * len(lines):
        command = filter_command(path, _LABEL_FIRST)
        raise InputError(
            f"{path} has labels with __label__ that do not begin their lines: write each of them "
            f"before its text, such as with `{command}`, and read only the new file"
        )
    found = [line for line in lines if b"__label__" in line.lower()]
    usual = [line for line in found if fasttext.LINE.fullmatch(line)]
    if len(found) >= _MOST * len(lines) and len(usual) < _MOST * len(found):
        raise InputError(
            f"{path} has __label__ in its lines, but not as fastText writes it, such as "
            f"'{printable(found[0])[:_SHOWN]}': begin each line with __label__, the label without "
            "blanks, and a blank, and read only the new file"
        )


def refuse_labels_beside(
    path: str, lines: Sequence[bytes], head: bytes, *, reads_labels: bool
) -> None:
    """Check that not every line of a text has a label without `__label__` beside the text.

    Labels repeat, unlike the numbers of lines, and the same characters separate all of them from
    the texts. In a file that is sorted by them, the first lines have one label, and the others in
    the beginning of the file have more.

    Args:
      path: path or URL of the file.
      lines: the first lines of a file of no other format.
      head: the beginning of the file.
      reads_labels: see `ReadOptions`.

    Raises:
      InputError: every line has one.
    """
    texts = [line.decode("utf-8", "replace").strip() for line in lines]
    for pattern in (_BEFORE, _BEHIND) if len(texts) >= _LEAST else ():
        found = [match for match in map(pattern.fullmatch, texts) if match]
        if len(found) < len(texts):
            continue
        labels = {match["label"].lower() for match in found}
        marks = {match["mark"].strip() for match in found}
        if len(labels) == 1:
            labels = _labels_of_all(head, pattern)
        if len(marks) > 1 or not 1 < len(labels) < len(texts):
            continue
        where, shown = "before", printable(texts[0][:_SHOWN])
        script = r"s/^[[:blank:]]*([^[:space:]]+)[[:blank:]]+/__label__\1 /"
        if pattern is _BEHIND:
            where, shown = "behind", printable(texts[0][-_SHOWN:])
            [mark] = marks
            between = f"[[:blank:]]*[{mark}][[:blank:]]*" if mark else "[[:blank:]]+"
            label = r"([^[:space:]]+)[[:space:]]*$"
            script = rf"s/^(.*[^[:blank:]]){between}{label}/__label__\2 \1/"
        command = filter_command(path, f"sed -E '{script}'")
        otherwise = "; if the label is a part of the text, set data.format to fasttext"
        raise InputError(
            f"{path} has a label {where} the text on each line, such as '{shown}': write it as "
            f"fastText does, such as with `{command}`, and read only the new file"
            f"{'' if reads_labels else otherwise}"
        )


def _labels_of_all(head: bytes, pattern: re.Pattern[str]) -> set[str]:
    """Return the labels beside the texts of almost all whole lines; none if more lines lack one.

    Published sets have a few labels without a text.

    Args:
      head: the beginning of a file.
      pattern: the pattern of a line with its label.
    """
    lines = [line.decode("utf-8", "replace").strip() for line in head.splitlines()[:-1]]
    lines = list(filter(None, lines))
    found = [match for match in map(pattern.fullmatch, lines) if match]
    if len(found) < _ALMOST_ALL * len(lines):
        return set()
    return {match["label"].lower() for match in found}
