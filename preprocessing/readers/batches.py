"""Reviews as columns, as many at a time as a block of a file holds.

Nearly every line of a fastText file is a review without anything unusual. Such a line is taken
apart as bytes; every other one is read as `read_reviews` does, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

from preprocessing.files import MAX_LINE_BYTES
from preprocessing.readers.line_formats import (
    PARSERS,
    TOO_LONG,
    USUAL,
    USUAL_LENGTH,
    LineParser,
)
from preprocessing.readers.pieces import Damaged, Lines, Piece, read_lines
from preprocessing.readers.records import (
    LINE_TOO_LONG,
    Neutral,
    Record,
    Rejected,
    Review,
    rejected,
)

_RECORDS = 1_000


class Batch(NamedTuple):
    """Consecutive lines of a piece: its reviews, column by column, and what else there was.

    `lost` is how many bytes of the (compressed) file are damaged.
    """

    positions: list[int]
    labels: list[int]
    texts: list[bytes]
    titles: list[bytes]
    bodies: list[bytes]
    rejected: list[Rejected]
    neutrals: int = 0
    lost: int = 0

    @property
    def lines(self) -> int:
        return len(self.texts) + len(self.rejected) + self.neutrals


def from_records(records: Iterable[Record]) -> Batch:
    """A batch of what records there are."""
    batch = _empty()
    neutrals = 0
    for record in records:
        neutrals += _add(batch, record)
    return batch._replace(neutrals=neutrals)


def in_batches(records: Iterator[Record]) -> Iterator[Batch]:
    """Batches of records of any format."""
    while chunk := list(islice(records, _RECORDS)):
        yield from_records(chunk)


def lost_batch(lost: int) -> Batch:
    """No line, and so many bytes that are damaged."""
    return _empty()._replace(lost=lost)


def read_piece(piece: Piece, pool: ThreadPoolExecutor) -> Iterator[Batch]:
    """Reads a piece of a file with one review a line; positions count from its beginning.

    Args:
      piece: what to read.
      pool: what decompresses it.
    """
    parse = PARSERS[piece.layout.format](piece.layout)
    fast = piece.layout.format == "fasttext"
    for found in read_lines(piece, pool):
        if isinstance(found, Rejected):
            yield _empty()._replace(rejected=[found])
        elif isinstance(found, Damaged):
            yield _empty()._replace(rejected=[found.record], lost=found.lost)
        else:
            yield _fasttext(found, parse) if fast and _is_clean(found.data) else _any(found, parse)


def _empty() -> Batch:
    return Batch([], [], [], [], [], [])


def _add(batch: Batch, record: Record) -> int:
    """Adds a record; 1 if it is neutral."""
    if isinstance(record, Review):
        batch.positions.append(record.position)
        batch.labels.append(record.label)
        batch.texts.append(record.text.encode())
        batch.titles.append(record.title.encode())
        batch.bodies.append(record.body.encode())
    elif isinstance(record, Rejected):
        batch.rejected.append(record)
    return int(isinstance(record, Neutral))


def _is_clean(data: bytes) -> bool:
    """Whether all of it is UTF-8, without NUL."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parse(position: int, line: bytes, parse: LineParser) -> Record:
    line = line.removesuffix(b"\r")
    if len(line) > MAX_LINE_BYTES:
        return rejected(position, LINE_TOO_LONG, TOO_LONG)
    return parse(position, line)


def _any(found: Lines, parse: LineParser) -> Batch:
    lines = enumerate(found.data.split(b"\n"), found.first)
    return from_records(_parse(position, line, parse) for position, line in lines)


def _fasttext(found: Lines, parse: LineParser) -> Batch:
    batch = _empty()
    positions, labels, texts, titles, bodies, _, _, _ = batch
    neutrals = 0
    for position, line in enumerate(found.data.split(b"\n"), found.first):
        label = USUAL.get(line[:USUAL_LENGTH])
        # A letter or digit first: there is text, and a title if there is a colon.
        if (
            label is None
            or not line[USUAL_LENGTH : USUAL_LENGTH + 1].isalnum()
            or len(line) > MAX_LINE_BYTES
            or line.endswith(b"\r")
        ):
            neutrals += _add(batch, _parse(position, line, parse))
            continue
        text = line[USUAL_LENGTH:]
        title, colon, body = text.partition(b": ")
        positions.append(position)
        labels.append(label)
        texts.append(text)
        titles.append(title if colon else b"")
        bodies.append(body if colon else text)
    return batch._replace(neutrals=neutrals)
