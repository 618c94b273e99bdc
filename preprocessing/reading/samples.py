"""Read the parts of a file that decide how it is read: its head, and samples of the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import BinaryIO

from core.errors import InputError
from preprocessing.reading.archives import CorruptArchive, DecompressedStream
from preprocessing.reading.columns import SEPARATORS, Layout
from preprocessing.reading.contents import PARQUET_MAGIC, refuse_other_content
from preprocessing.reading.file_format import has_line_format
from preprocessing.reading.open_files import file_compression, file_size, open_bytes
from preprocessing.reading.pieces import (
    TOO_LONG,
    Lines,
    Piece,
    decompress,
    split_lines,
    without_marks,
)
from preprocessing.reading.shell_commands import filter_command

_HEAD = 1 << 20
_MAX_FIRST_LINE = 64 << 20
"""A first line that is too long is skipped up to this number of bytes, and the lines after it are
inspected. A file with a longer first line is refused."""
_SAMPLES = 8
"""Number of samples of a file after its head, at equal distances."""
_SAMPLE_BYTES = 1 << 16
_BZ2_SAMPLES = 3
_LAST_BZ2_BYTES = 1 << 20
"""Bytes at the end of a bz2 file that are read as the last sample. They contain the start of the
last block."""


def read_head(path: str) -> tuple[bytes, bool]:
    """Return the first complete lines of a file, and whether they are the whole file.

    Byte order marks at the starts of lines are left out. If a file begins with a MiB of blank lines
    or more, these are left out too. If a bz2 file of fastText or JSON lines is damaged at its
    start, the lines are those after the damage, as for the readers of these formats.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be read, is not reviews, or begins with a line that is too long.
    """
    head, damaged = bytearray(), False
    with open_bytes(path) as stream:
        try:
            _fill(head, stream)
            _skip_blank_lines(head, stream)
        except CorruptArchive:
            damaged = True
        refuse_other_content(path, bytes(head), isinstance(stream, DecompressedStream))
        is_all = len(head) < _HEAD and not damaged
        is_line = is_all or damaged or b"\n" in head or head.startswith(PARQUET_MAGIC)
        try:
            start = b"" if is_line else bytes(head)
            if not is_line and not _skip_line(head, stream):
                refuse_cr(path, start)
                raise InputError(
                    f"{path} begins with a line of {TOO_LONG}, and no other lines follow within "
                    f"{_MAX_FIRST_LINE:,} bytes: write each record on a line of its own, such as a "
                    "JSON object or a record of CSV, and read only the new file"
                )
        except CorruptArchive:
            damaged = True
    if damaged or (not is_all and b"\n" in head):
        del head[head.rfind(b"\n") + 1 :]
    if damaged and not head.strip():
        return _intact_lines(path), False
    return without_marks(bytes(head)), is_all


def _intact_lines(path: str) -> bytes:
    """Return the first intact lines of a damaged bz2 file, if they are fastText or JSON lines.

    The readers of all other files stop at the damage, so the result is empty for them.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be opened.
    """
    if file_compression(path) != "bz2":
        return b""
    piece = Piece(path, Layout("empty"), end=file_size(path), is_bz2=True)
    with ThreadPoolExecutor(1) as pool:
        found = split_lines(decompress(piece, pool), 0)
        parts = (without_marks(item.data) for item in found if isinstance(item, Lines))
        lines = next(filter(bytes.strip, parts), b"")
    return lines if lines and has_line_format(lines) else b""


def _fill(head: bytearray, stream: BinaryIO) -> None:
    while len(head) < _HEAD and (data := stream.read(_HEAD - len(head))):
        head += data


def _skip_blank_lines(head: bytearray, stream: BinaryIO) -> None:
    """Replace a head without a complete line behind its blank lines by the content after these."""
    while len(head) == _HEAD:
        start = len(head) - len(head.lstrip())
        if not start or b"\n" in head[start:]:
            return
        del head[:start]
        _fill(head, stream)


def _skip_line(head: bytearray, stream: BinaryIO) -> bool:
    """Replace a head that ends within the first line by the content after this line.

    The readers reject such a line, because it is too long.

    Returns:
      Whether lines follow.
    """
    size = len(head)
    while b"\n" not in head and size < _MAX_FIRST_LINE and (data := stream.read(_HEAD)):
        size += len(data)
        head[:] = data
    if b"\n" not in head:
        return False
    del head[: head.find(b"\n") + 1]
    _fill(head, stream)
    return bool(head.strip())


def sampled_lines(path: str) -> Iterator[bytes]:
    """Yield complete lines from samples distributed over a file, including its end.

    The head of a sorted file has only one label. Nothing is yielded for a gzip or zstd file, which
    can only be read from its start.

    Args:
      path: path or URL of the file.

    Raises:
      InputError: the file cannot be opened.
    """
    packed = file_compression(path)
    if packed not in (None, "bz2"):
        return
    size, samples = file_size(path), _BZ2_SAMPLES if packed else _SAMPLES
    with ThreadPoolExecutor(1) as pool:
        for number in range(1, samples + 1):
            is_last = number == samples
            start, end = size * number // samples - _SAMPLE_BYTES, size * number // samples
            if packed:
                start, end = size - _LAST_BZ2_BYTES if is_last else end, size
            piece = Piece(path, Layout("empty"), 0, max(1, start), end, is_bz2=bool(packed))
            found = split_lines(decompress(piece, pool), piece.start)
            lines = (without_marks(item.data) for item in found if isinstance(item, Lines))
            # A sample of a bz2 file is one block.
            yield from islice(lines, None if is_last else 1)


def refuse_cr(path: str, head: bytes) -> None:
    """Check that the lines of a file do not end with CR alone.

    Args:
      path: the path of the file.
      head: the beginning of the file.

    Raises:
      InputError: they end with CR alone. Some programs add a final LF to such a file.
    """
    # A quoted field may contain line breaks.
    outside = re.sub(rb'"[^"]*"', b"", head).strip()
    if b"\r" not in outside or b"\n" in outside:
        return
    # A text may contain carriage returns, also that of the only line of a file.
    if not head.endswith(b"\n") or _are_alike(outside.split(b"\r")):
        raise InputError(
            f"{path} has lines that end with CR alone: convert it with `"
            + filter_command(path, r"tr '\r' '\n'")
            + "`, and read only the new file"
        )


def _are_alike(lines: Sequence[bytes]) -> bool:
    """Return whether most lines begin like the first, or have as many separators."""
    for start in (b"__label__", b"{"):
        if lines[0].startswith(start):
            return sum(line.startswith(start) for line in lines) > len(lines) / 2
    for mark in map(str.encode, SEPARATORS):
        number = lines[0].count(mark)
        if number and sum(line.count(mark) == number for line in lines) > len(lines) / 2:
            return True
    return False
