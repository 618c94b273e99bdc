"""Split decompressed content into lines."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from preprocessing.reading.pieces import Chunk
from preprocessing.reading.records import CORRUPT_ARCHIVE, LINE_TOO_LONG, Rejected, rejected

MAX_LINE_BYTES = 1 << 20
TOO_LONG = "more than 1,048,576 bytes"


class Lines(NamedTuple):
    """Complete lines without the last line break; `first` is the number of the first line."""

    first: int
    data: bytes


class Lost(NamedTuple):
    """A line that cannot be read; `bytes` is the size of the damage that it represents, or 0."""

    record: Rejected
    bytes: int = 0


def split_lines(chunks: Iterable[Chunk], start: int) -> Iterator[Lines | Lost]:
    """Yield every line of a piece, many at a time; line numbers start at 1.

    A line that is too long is lost, and is not kept in memory. Damage counts as one lost line.
    Nothing behind the damage of a gzip or zstd file can be read.

    Args:
      chunks: the content of the piece and the content behind it; see `pieces.decompress`. None is
        longer than the longest line.
      start: the byte of the file at which the piece starts.
    """
    number = 0
    tail: bytes | None = b""  # the unfinished line so far; None once it is too long
    skipping = start > 0  # whether to skip the content before the next line
    for chunk in chunks:
        if chunk.damage is not None:
            if not chunk.own:
                return  # the damage cuts the last line; the next piece reports the damage
            number += 1
            yield Lost(rejected(number, CORRUPT_ARCHIVE, chunk.damage), chunk.lost)
            tail, skipping = b"", True
            continue
        data = chunk.data
        if skipping:
            if not chunk.own:
                return  # this line began before the piece
            begins = data.find(b"\n") + 1
            if not begins:
                continue
            data, skipping = data[begins:], False
        end = data.rfind(b"\n") if chunk.own else data.find(b"\n")
        if end < 0:
            tail = _joined(tail, data)
            continue
        first = data.find(b"\n")
        if tail is None or _is_long(tail + data[:first]):
            number += 1
            yield Lost(rejected(number, LINE_TOO_LONG, TOO_LONG))
            data, end, tail = data[first + 1 :], end - first - 1, b""
        if end >= 0:
            found = tail + data[:end]
            if not number and not start:
                found = found.removeprefix(codecs.BOM_UTF8)
            yield Lines(number + 1, found)
            number += 1 + found.count(b"\n")
        if not chunk.own:
            return
        tail = _joined(b"", data[end + 1 :])
    if tail is None or _is_long(tail):
        yield Lost(rejected(number + 1, LINE_TOO_LONG, TOO_LONG))
    elif tail:
        yield Lines(number + 1, tail if number or start else tail.removeprefix(codecs.BOM_UTF8))


def _is_long(line: bytes) -> bool:
    return len(line.removesuffix(b"\r")) > MAX_LINE_BYTES


def _joined(tail: bytes | None, more: bytes) -> bytes | None:
    if tail is None or len(tail) + len(more) > MAX_LINE_BYTES + 1:
        return None
    return tail + more
