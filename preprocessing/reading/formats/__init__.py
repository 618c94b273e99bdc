"""The formats of review files, one module each: lines or a stream in, batches out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from preprocessing import features
from preprocessing.reading.choice import Chooser
from preprocessing.reading.columns import HEADERLESS, Columns, Layout
from preprocessing.reading.labels import LabelReader
from preprocessing.reading.records import (
    LONGEST_MISSING,
    MISSING_STARTS,
    NO_TEXT,
    OTHER_SCALE,
    REPEATED_HEADER,
    UNKNOWN_COLUMNS,
    WRONG_TYPE,
    Batch,
    has_text,
    id_text,
    is_missing,
    printable,
)
from preprocessing.reading.values import as_text, is_filled, kind, shown

_SHOWN = 5
_MISSING_LABEL = ", a word for a missing value (a mapping in data.labels can make it a class)"
_MISSING_NUMBER = ", which marks a missing label (a mapping in data.labels can make it a class)"


class RowReader:
    """A reader of the records of a file with columns.

    Nearly every record has the columns of the layout. `add_usual` adds such a record without the
    values of other columns. `add` adds any record.

    Args:
      layout: the layout of the file.
    """

    def __init__(self, layout: Layout) -> None:
        columns = layout.columns or HEADERLESS
        self._layout = layout
        self._text_name = columns.text.lower()
        self._reads_labels = layout.reads_labels
        self._labels = LabelReader(layout)
        self._read_label = self._labels.read
        self._readers = {columns.label: self._labels}
        self._has_several_names = any(len(of.known_names) > 1 for of in features.further_columns())
        self._is_ambiguous = not self._reads_labels or self._has_several_names
        self.chooser = Chooser(layout)
        self._has_others = self.chooser.has_others
        self._has_id = columns.id is not None
        self.names = columns.names
        """The columns whose values `add_usual` requires; None for a column that the file lacks."""

    def add_usual(
        self, batch: Batch, position: int, values: Sequence[Any], present: Iterable[str]
    ) -> bool:
        """Add a record if it has a text and a label in the columns of the layout.

        Args:
          batch: the batch to which the record is added.
          position: the position of the record in the piece, from 1.
          values: its values in the columns `names`; None for a missing value.
          present: the names of all its columns.

        Returns:
          Whether the record was added.
        """
        label, title, text, *further, id = values
        # The header of a joined CSV file, whose label is no class. The length saves most calls.
        if isinstance(text, str) and len(text) == len(self._text_name) and self._is_name(text):
            return False
        meaning = self._read_label(label)
        if meaning is None or not isinstance(text, str) or not text or text.isspace():
            return False
        if title is None:
            title = ""
        elif not isinstance(title, str):
            return False
        elif title[:1] in MISSING_STARTS and is_missing(title, {}):
            title = ""
        if self._is_ambiguous and self._may_differ(label, title, further, present):
            return False
        is_short = len(text) <= LONGEST_MISSING  # saves a call for nearly every record
        if is_short and (
            not has_text(text) or (is_missing(text, {}) and self._has_others(tuple(present)))
        ):
            return False
        batch.add(position, meaning, title, text, further, id_text(id) if self._has_id else None)
        return True

    def _is_name(self, text: str) -> bool:
        return text.lower() == self._text_name

    def _may_differ(
        self, label: Any, title: str, further: Sequence[Any], present: Iterable[str]
    ) -> bool:
        """Return whether other columns than the layout's may fit a record with a text better."""
        # Several datasets have the same name for the text. The other names identify the dataset.
        if not self._reads_labels:
            is_missing_label = is_missing(label, self._layout.label_map)
            if is_missing_label or (not title and not is_filled(label)):
                return self._has_others(tuple(present))
        return self._has_several_names and not all(map(is_filled, further))

    def add(self, batch: Batch, position: int, record: Mapping[str, Any]) -> None:
        """Add a record by the columns that it fills, as a review or as a rejected line.

        A record of JSON lines or Parquet with the names of its columns was a header of a CSV file.

        Args:
          batch: the batch to which the record is added.
          position: the position of the record in the piece, from 1.
          record: column -> value, for all its columns.
        """
        if _repeats_names(record):
            return batch.reject(position, REPEATED_HEADER, "the names of the columns again")
        columns = self.chooser.columns(record)
        label, title, text, *further, id = (
            record.get(name) if name else None for name in columns.names
        )
        title = None if is_missing(title, {}) else title
        if not has_text(text):
            text = "" if is_filled(text) else text
            unread = self.chooser.unread(record, columns)
            if unread:
                others = ", ".join(f"`{printable(name)[:40]}`" for name in unread[:_SHOWN])
                detail = f"no text in `{columns.text}`, but a value in {others}"
                return batch.reject(position, UNKNOWN_COLUMNS, detail)
        reader = self._label_reader(columns)
        meaning = reader.read(label)
        if meaning is None:
            if not is_filled(title) and not is_filled(text):
                return self._reject_empty(batch, position, columns, label)
            if columns.label is None:  # the value may be one of `is_missing`
                label = record.get(self.names[0] or "")
            if kind(label):
                name = columns.label or self.names[0]
                return self._reject_type(batch, position, name, label)
            why = _MISSING_LABEL if is_missing(label, self._layout.label_map) else ""
            why = _MISSING_NUMBER if reader.is_number_of_none(label) else why
            reason = reader.reason(label)
            is_other = reason == OTHER_SCALE and columns.label != self.names[0]
            where = f" in `{columns.label}`" if is_other else ""
            detail = f"label{where}: {printable(label)}{why}" if is_filled(label) else "no label"
            return batch.reject(position, reason, detail)
        title_text, body = as_text(title), as_text(text)
        if title_text is None:
            return self._reject_type(batch, position, columns.title, title)
        if body is None:
            return self._reject_type(batch, position, columns.text, text)
        id_bytes = id_text(id) if self._has_id else None
        return batch.add(position, meaning, title_text, body, further, id_bytes)

    def _reject_empty(self, batch: Batch, position: int, columns: Columns, label: object) -> None:
        """Reject a record without a title and a text, whose label may be the whole of a review."""
        if isinstance(label, str) and len(label.split(maxsplit=1)) > 1:
            detail = f"no text in `{columns.text}`, but in `{columns.label}`: {printable(label)}"
            return batch.reject(position, UNKNOWN_COLUMNS, detail)
        return batch.reject(position, NO_TEXT, "an empty record")

    def _reject_type(self, batch: Batch, position: int, name: str | None, value: Any) -> None:
        batch.reject(position, WRONG_TYPE, f"`{name}` is {kind(value)}: {shown(value)}")

    def _label_reader(self, columns: Columns) -> LabelReader:
        if columns.label is None:
            return self._labels
        if columns.label not in self._readers:
            self._readers[columns.label] = LabelReader(self._layout, columns.label)
        return self._readers[columns.label]


def _repeats_names(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the names of its columns; one word alone may be a text.

    A reader of Parquet has True in place of the values that it does not read.
    """
    number = 0
    for name, value in record.items():
        if value is True or not is_filled(value):
            continue
        if not isinstance(value, str) or value.strip().lower() != name.strip().lower():
            return False
        number += 1
    return number > 1 or (number == 1 and any(record.get(name) == name for name in record))
