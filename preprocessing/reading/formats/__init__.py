"""The formats of review files, one module each: lines or a stream in, batches out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from preprocessing.reading.labels import LabelReader
from preprocessing.reading.records import BROKEN_JSON, NO_TEXT, Batch, as_text, printable


def add_row(batch: Batch, position: int, values: Sequence[Any], labels: LabelReader) -> None:
    """Add a row of a format with columns to a batch.

    `values` are the label, the title, the text and the further columns, as the file has them; None
    for a value that it lacks.
    """
    label, title, text, *further = values
    meaning = labels.read(label)
    if meaning is None:
        if not title and not text:
            batch.reject(position, NO_TEXT, "an empty record")
        else:
            batch.reject(position, labels.reason(label), f"label: {printable(label)}")
        return
    title = title if isinstance(title, str) else as_text(title)
    text = text if isinstance(text, str) else as_text(text)
    if title is None or text is None:
        batch.reject(position, BROKEN_JSON, "an object or a list instead of a text")
    else:
        batch.add(position, meaning, title, text, further)
