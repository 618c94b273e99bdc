"""fastText: `__label__2 Title: body` on each line, where the label is a number or a word.

The text has every character after the label. If labels are not read, all labels at the start of
a line are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from preprocessing.reading.columns import Layout
from preprocessing.reading.labels import CollectedLabels, LabelReader
from preprocessing.reading.pieces import Lines, without_marks
from preprocessing.reading.records import BAD_LABEL, INVALID_UTF8, NO_TEXT, Batch

LINE = re.compile(rb"(__label__[^\s,]+)(?:[ \t](.*))?", re.DOTALL)
_LABELLED = re.compile(rb"(__label__\S+)(?:[ \t](.*))?", re.DOTALL)
"""A line whose label may contain a comma, unlike `LINE`, by which a file is recognised: a CSV file
may begin with `__label__1,text`."""
LATE_LABEL = re.compile(rb"[ \t]__label__[^\s,]+(?=\s|$)")
"""A label that does not begin its line."""
_LABELS = re.compile(rb"(?:__label__\S+(?:[ \t]|$))*")
_FIRST_LABELS = re.compile(rb"^__label__[^\s,]+(?=\s|$)", re.MULTILINE)
_PREFIX = b"__label__"
_NEXT_LINE = b"\r" + _PREFIX
"""The beginning of a line behind one that ends with CR alone, as in a part of a joined file."""
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
    reads_labels = layout.reads_labels
    is_named = bool(layout.label_map) or layout.collected is not None
    usual: dict[bytes, int] = {}
    if not is_named:
        read = {b"__label__%d " % number: reader.read(str(number)) for number in range(10)}
        usual = {start: label for start, label in read.items() if label is not None and label >= 0}
    named = _NamedLabels(reader)

    def parse(lines: Lines) -> Batch:
        batch = Batch()
        data = without_marks(lines.data)
        positions, texts = batch.positions, batch.texts
        # If any of the lines is not UTF-8, has a NUL or a CR before a label, `_parse` parses all.
        clean = b"\0" not in data and _NEXT_LINE not in data
        try:
            data.decode()
        except UnicodeDecodeError:
            clean = False
        usual_labels = usual if clean else {}
        is_named_and_clean = is_named and clean and reads_labels
        for position, line in enumerate(data.split(b"\n"), lines.first):
            label, start = usual_labels.get(line[:_USUAL_LENGTH]), _USUAL_LENGTH
            if not reads_labels and label is None and clean and not line.startswith(_PREFIX):
                label, start = 0, 0
            elif is_named_and_clean:
                start = line.find(b" ") + 1
                label = named[line[:start]]
            # If a text starts with a letter or digit, the text and its title are not blank.
            if label is None or not line[start : start + 1].isalnum() or line.endswith(b"\r"):
                _parse(batch, position, line.removesuffix(b"\r"), reader if reads_labels else None)
                continue
            positions.append(position)
            texts.append(line[start:])
            batch.labels.append(label)
        return batch

    return parse


class _NamedLabels(dict[bytes, "int | None"]):
    """The start of a line, such as `__label__refund `, -> the label; None if `_parse` decides.

    Args:
      reader: the reader of the labels. Only labels that it knows are stored, at most
        `CollectedLabels.MAX`.
    """

    def __init__(self, reader: LabelReader) -> None:
        super().__init__()
        self._reader = reader

    def __missing__(self, start: bytes) -> int | None:
        match = _LABELLED.fullmatch(start)
        # With a tab after the label, `start` ends within the text.
        label = self._reader.read(_decoded(match[1])) if match and not match[2] else None
        if label is None or label < 0 or len(self) >= CollectedLabels.MAX:
            return None
        self[start] = label
        return label


def _parse(batch: Batch, position: int, line: bytes, labels: LabelReader | None) -> None:
    """Add a line to a batch; `labels` is None if labels are not read."""
    if not line.strip():
        return batch.reject(position, NO_TEXT, "a blank line")
    if _NEXT_LINE in line:
        batch.lost += len(line)
        return batch.reject(position, BAD_LABEL, b"several lines that end with CR alone: " + line)
    if labels is None:
        label, data = 0, _LABELS.sub(b"", line, count=1)
    else:
        match = _LABELLED.fullmatch(line)
        if match is None:
            return batch.reject(position, BAD_LABEL, line)
        given = _decoded(match[1])
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


def _decoded(label: bytes) -> str:
    """Return a label as text. Bytes that are not UTF-8 become characters that no text has."""
    return label.decode("utf-8", "surrogateescape")
