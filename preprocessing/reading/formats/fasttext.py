"""fastText: `__label__2 Title: body` on each line, where the label is a number or a word.

The text has every character after the label. If labels are optional, all labels at the start of a
line are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from preprocessing.reading.columns import Layout
from preprocessing.reading.labels import LabelReader
from preprocessing.reading.pieces import Lines
from preprocessing.reading.records import BAD_LABEL, INVALID_UTF8, NO_TEXT, Batch

LINE = re.compile(rb"(__label__[^\s,]+)(?:[ \t](.*))?", re.DOTALL)
_LABELS = re.compile(rb"(?:__label__[^\s,]+(?:[ \t]|$))*")
_FIRST_LABELS = re.compile(rb"^__label__[^\s,]+(?=\s|$)", re.MULTILINE)
_PREFIX = b"__label__"
_USUAL_LENGTH = len(b"__label__2 ")


def labels(lines: bytes) -> list[bytes]:
    """Return the first label of each line that begins with one, such as `__label__2`."""
    return _FIRST_LABELS.findall(lines)


def make_parser(layout: Layout) -> Callable[[Lines], Batch]:
    """Return the function that parses the lines of a file with this layout.

    Nearly every line is an ordinary review. Such a line is not decoded, and its label is found by
    one look-up, in a third of the time of `_parse`, which parses all other lines.

    Args:
      layout: the layout of the file.
    """
    reader = LabelReader(layout)
    optional = layout.labels == "optional"
    read = {b"__label__%d " % number: reader.read(str(number)) for number in range(10)}
    # While labels are collected, each of them is counted.
    usual = {start: label for start, label in read.items() if label is not None and label >= 0}
    if layout.collected is not None:
        usual = {}

    def parse(lines: Lines) -> Batch:
        batch = Batch()
        positions, texts = batch.positions, batch.texts
        # If any of the lines is not UTF-8 or has a NUL, `_parse` parses all of them.
        clean = b"\0" not in lines.data
        try:
            lines.data.decode()
        except UnicodeDecodeError:
            clean = False
        usual_labels = usual if clean else {}
        for position, line in enumerate(lines.data.split(b"\n"), lines.first):
            label, start = usual_labels.get(line[:_USUAL_LENGTH]), _USUAL_LENGTH
            if optional and label is None and clean and not line.startswith(_PREFIX):
                label, start = 0, 0
            # If a text starts with a letter or digit, the text and its title are not blank.
            if label is None or not line[start : start + 1].isalnum() or line.endswith(b"\r"):
                _parse(batch, position, line.removesuffix(b"\r"), None if optional else reader)
                continue
            positions.append(position)
            texts.append(line[start:])
            batch.labels.append(label)
        return batch

    return parse


def _parse(batch: Batch, position: int, line: bytes, labels: LabelReader | None) -> None:
    """Add a line to a batch; `labels` is None if labels are optional."""
    if not line.strip():
        return batch.reject(position, NO_TEXT, "a blank line")
    if labels is None:
        label, data = 0, _LABELS.sub(b"", line, count=1)
    else:
        match = LINE.fullmatch(line)
        if match is None:
            return batch.reject(position, BAD_LABEL, line)
        given = match[1].decode("utf-8", "replace")
        found = labels.read(given)
        if found is None:
            return batch.reject(position, labels.reason(given), line)
        label, data = found, match[2] or b""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return batch.reject(position, INVALID_UTF8, data[error.start :])
    if labels is not None and text.startswith("__label__"):
        return batch.reject(position, BAD_LABEL, "more than one label: " + text)
    return batch.add(position, label, "", text)
