"""Choose the columns of each record of a CSV, JSON lines or Parquet file by its filled columns.

A file may contain the records of several datasets, one after the other or mixed. A record is read

1. by `Layout.columns` if these columns contain a text and a readable label;
2. otherwise by the convention that fits best. A filled text counts more than a filled label, and a
   label more than a title. If several conventions fit equally well, `Layout.columns` take
   precedence, followed by the others in the order of `columns.CONVENTIONS`.

So the title and the text belong to the same dataset, even if a record has the columns of several.
If that dataset has no label in the record, the label is taken from another dataset, and with the
label also a missing title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from preprocessing import features
from preprocessing.reading.columns import (
    CONVENTIONS,
    HEADERLESS,
    KNOWN_LABELS,
    KNOWN_TEXTS,
    LABEL,
    TEXT,
    TITLE,
    Columns,
    Layout,
    candidates,
    further_names,
    names_in_lower_case,
)
from preprocessing.reading.records import has_text, is_missing
from preprocessing.reading.values import as_text, is_filled

_KINDS = 1_024
"""Number of sets of names for which the chosen columns are cached."""


class Chooser:
    """A chooser of the columns of each record of a file.

    Args:
      layout: the layout of the file.

    Attributes:
      has_others: (names of the columns of a record) -> whether the record may be read by other
        columns than `Layout.columns`.
    """

    def __init__(self, layout: Layout) -> None:
        first = layout.columns or HEADERLESS
        self._first = first
        self._chosen = dict(layout.chosen)
        if not layout.reads_labels and self._chosen.get(LABEL) != first.label:
            self._chosen.pop(LABEL, None)  # the file has no labels
        self.beside = set(layout.beside)
        """The names of columns that are filled in records with a text. A reader may add others."""
        self._reads_labels = layout.reads_labels
        self._label_map = layout.label_map
        known = {name for convention in CONVENTIONS for name in convention if name}
        self._known = known.union(*(names for _, _, names in features.further_columns()))
        self._set = {name for name in self._chosen.values() if name}
        # The records of a file have few different sets of names.
        self._known_among = lru_cache(_KINDS)(self._find_known)
        self._columns_among = lru_cache(_KINDS)(self._find_columns)
        self.has_others = lru_cache(_KINDS)(self._may_have_others)

    def names(self, present: Iterable[str]) -> tuple[str, ...]:
        """Return the columns of a file that may be read for one of its records.

        Args:
          present: the names of all columns of the file.
        """
        known = self._known_among(tuple(present))
        return (*known, self._first.id) if self._first.id else known

    def labels(self, present: Iterable[str]) -> list[str]:
        """Return the columns of a file that contain labels, beginning with that of the layout.

        Args:
          present: the names of all columns of the file.
        """
        if self._chosen.get(LABEL):
            return [name for name in present if name == self._chosen[LABEL]]
        names = [name for name in present if name.lower() in KNOWN_LABELS]
        return sorted(names, key=lambda name: name != self._first.label)

    def texts(self, present: Iterable[str]) -> list[str]:
        """Return the columns of a file that contain texts.

        Args:
          present: the names of all columns of the file.
        """
        if self._chosen.get(TEXT):
            return [name for name in present if name == self._chosen[TEXT]]
        return [name for name in present if name.lower() in KNOWN_TEXTS]

    def columns(self, record: Mapping[str, Any]) -> Columns:
        """Return the columns by which a record is read.

        Args:
          record: column -> value.

        Returns:
          The columns; without a text in the record, the column of the text is that of the layout.
        """
        known = self._known_among(tuple(record))
        filled = [name for name in known if self._counts(name, record)]
        texts = self.texts(filled)
        words = {name for name in texts if is_missing(record[name], {})}
        # Such a word may be a text, but not if another column of the record has a text.
        if 0 < len(words) < len(texts):
            filled = [name for name in filled if name not in words]
        return self._columns_among(tuple(filled))

    def _counts(self, name: str, record: Mapping[str, Any]) -> bool:
        """Return whether a column is filled; a label like `NaN` fills none."""
        value = record[name]
        is_label = name.lower() in KNOWN_LABELS or name == self._chosen.get(LABEL)
        return is_filled(value) and not (is_label and is_missing(value, self._label_map))

    def unread(self, record: Mapping[str, Any], columns: Columns) -> list[str]:
        """Return the unknown columns that may contain the text of a record.

        The column of ids does not. If labels are read and the record has neither a title nor a
        label, nor the column that is set for the text, all its filled columns may. Otherwise,
        columns that other records fill in addition to a text, such as a product number, are left
        out. If the record has a title, or no text was read so far, only values of several words
        count.

        Args:
          record: column -> value, for a record without a text in known columns.
          columns: the columns by which the record is read.
        """
        names = [
            name
            for name in record
            if name not in (columns.label, columns.title, self._first.id)
            and name.lower() not in KNOWN_LABELS
            and is_filled(record[name])
        ]
        is_set = self._chosen.get(TEXT) in record
        if columns.title is None and columns.label is None and self._reads_labels and not is_set:
            return names
        names = [name for name in names if name not in self.beside]
        if columns.title is None and self.beside:
            return names
        return [name for name in names if _has_words(record[name])]

    def _may_have_others(self, names: tuple[str, ...]) -> bool:
        """Return whether a record with these columns may be read by others than the layout's."""
        return not set(self._known_among(names)) <= set(self._first.names)

    def _find_known(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for name in names if name.lower() in self._known or name in self._set)

    def _find_columns(self, filled: tuple[str, ...]) -> Columns:
        by_name = names_in_lower_case(filled)
        chosen = {
            role: name if name in filled else None
            for role, name in self._chosen.items()
            if name or role == TITLE
        }
        label, title, text = (
            chosen[role] if role in chosen else by_name.get((name or "").lower())
            for role, name in self._first.roles.items()
        )
        found = [Columns(label, title, text or ""), *candidates(by_name, chosen)]
        best = max(found, key=lambda one: (bool(one.text), bool(one.label), bool(one.title)))
        if self._first.by_label and not self._reads_labels and text:
            best = found[0]  # the columns of the training
        if best.label is None:
            other = max(found, key=lambda one: (bool(one.label), bool(one.title)))
            best = best._replace(label=other.label)
            if best.title is None and (other.label or other is found[0]):
                best = best._replace(title=other.title)
        return best._replace(
            text=best.text or self._first.text,
            further=further_names(by_name, chosen),
            id=self._first.id,
        )


def survey(records: Iterable[Mapping[str, Any]], layout: Layout) -> Layout:
    """Return a layout whose `alternatives` and `beside` are those of some records.

    Args:
      records: the records in the head of the file, column -> value.
      layout: the layout of the file, without these attributes.
    """
    chooser = Chooser(layout)
    found: Counter[Columns] = Counter()
    beside: set[str] = set()
    for record in records:
        columns = chooser.columns(record)
        if has_text(record.get(columns.text)):
            found[columns] += 1
            beside.update(name for name, value in record.items() if is_filled(value))
    ways: dict[tuple[str | None, str], Columns] = {}  # label and text -> the most frequent columns
    for columns, _ in found.most_common():
        ways.setdefault((columns.label, columns.text), columns)
    first = layout.columns
    if first:
        # A record without a label has no columns of its own.
        ways = {key: columns for key, columns in ways.items() if key[0] or not first.label}
        ways.pop((first.label, first.text), None)
    return replace(layout, alternatives=tuple(ways.values()), beside=tuple(sorted(beside)))


def _has_words(value: Any) -> bool:
    """Return whether a value, or one within a list or an object, is a text of several words."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, (list, dict)):
            left += one.values() if isinstance(one, dict) else one
        elif isinstance(one, str) and len((as_text(one) or "").split(maxsplit=1)) > 1:
            return True
    return False
