"""The formats of review files, one module each: lines or a stream in, batches or records out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from preprocessing.reading.labels import LabelReader
from preprocessing.reading.records import (
    BROKEN_JSON,
    NO_TEXT,
    Record,
    as_text,
    further_values,
    make_review,
    printable,
    rejected,
)


def make_record(position: int, values: Sequence[Any], labels: LabelReader) -> Record:
    """Return the record of a row of a format with columns.

    `values` are the label, the title, the text and the further columns, as the file has them; None
    for a value that it lacks.
    """
    label, title, text, *further = values
    meaning = labels.read(label)
    if meaning is None:
        if not title and not text:
            return rejected(position, NO_TEXT, "an empty record")
        return rejected(position, labels.reason(label), f"label: {printable(label)}")
    title = title if isinstance(title, str) else as_text(title)
    text = text if isinstance(text, str) else as_text(text)
    if title is None or text is None:
        return rejected(position, BROKEN_JSON, "an object or a list instead of a text")
    return make_review(position, meaning, title, text, further_values(further) if further else ())
