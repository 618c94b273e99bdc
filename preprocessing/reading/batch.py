"""The result of reading: a batch of reviews, column by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from preprocessing.reading.records import Record, Rejected, Review

_RECORDS = 1_000


@dataclass(slots=True)
class Batch:
    """Consecutive lines of a piece: its reviews, column by column, and the other lines.

    Attributes:
      positions: line numbers of the reviews in the piece, from 1.
      labels: 0 negative, 1 positive; 0 for all if labels are not read.
      texts, titles, bodies: UTF-8.
      rejected: the lines that cannot be read.
      neutrals: the number of lines that are left out as neutral.
      lost: the number of damaged bytes in the (compressed) file.
    """

    positions: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    titles: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    neutrals: int = 0
    lost: int = 0

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.texts) + len(self.rejected) + self.neutrals

    def add(self, record: Record) -> None:
        """Append one line."""
        if isinstance(record, Review):
            self.positions.append(record.position)
            self.labels.append(record.label)
            self.texts.append(record.text.encode())
            self.titles.append(record.title.encode())
            self.bodies.append(record.body.encode())
        elif isinstance(record, Rejected):
            self.rejected.append(record)
        else:
            self.neutrals += 1


def in_batches(records: Iterable[Record]) -> Iterator[Batch]:
    """Yield batches of a thousand records each."""
    waiting = iter(records)
    while chunk := list(islice(waiting, _RECORDS)):
        batch = Batch()
        for record in chunk:
            batch.add(record)
        yield batch
