"""Find what a file is that no run reads, and decode text of other encodings than UTF-8."""

from __future__ import annotations

import codecs
import os
from typing import BinaryIO

from pipeline.data_convert.json_documents import may_be_document
from preprocessing.reading import encoding
from preprocessing.reading.archives import CorruptArchive, DecompressedStream
from preprocessing.reading.contents import JSON_DOCUMENT, PARQUET_MAGIC, TAR, ZIP, Kind, find_kind
from preprocessing.reading.open_files import open_bytes

_HEAD, _STEP = 1 << 20, 1 << 20
"""Bytes of each of three places of a file whose encoding is found, and of a step of decoding."""


def find_change(path: str, max_fraction: float) -> str | Kind | None:
    """Return what a file is that has to be converted; None if no conversion is known or needed.

    Args:
      path: path or URL of the file.
      max_fraction: the maximum fraction of lines that may be in another encoding than UTF-8.

    Returns:
      The name of an encoding in `iconv`; JSON_DOCUMENT, ZIP or TAR of `contents`.

    Raises:
      InputError: the file cannot be opened.
    """
    with open_bytes(path) as stream:
        is_packed = isinstance(stream, DecompressedStream)
        try:
            head = stream.read(_HEAD)
        except CorruptArchive:
            return None
        is_all = len(head) < _HEAD
        later = [] if is_packed or is_all else _later_lines(stream)
    if head.startswith(PARQUET_MAGIC):
        return None
    wide = encoding.wide(head)
    if wide:
        return wide
    kind = find_kind(head)
    if kind == TAR or (kind == ZIP and not is_packed):
        return kind
    if kind not in (None, JSON_DOCUMENT):
        return None
    *lines, last = head.split(b"\n")
    # The last character of the head may be cut.
    is_last_utf8 = encoding.is_utf8(last) if is_all else _begins_with_utf8(last)
    others = [line for line in [*lines, *later] if not encoding.is_utf8(line)]
    others += [] if is_last_utf8 else [last]
    if len(others) > max_fraction * (len(lines) + len(later) + 1):
        return encoding.guess(b"\n".join(others))
    return JSON_DOCUMENT if may_be_document(head, is_all) else None


def decode(path: str, name: str, target: str, most: int) -> bool:
    """Write a file in UTF-8.

    Lines that are UTF-8 already, as in files that were joined, stay as they are in a file of CESU-8
    or one of the Windows encodings.

    Args:
      path: path or URL of the file.
      name: its encoding.
      target: path of the new file.
      most: the maximum number of bytes that are read. The last line of a part is left out.

    Returns:
      Whether the whole file was decoded.

    Raises:
      InputError: the file cannot be opened.
      OSError: a file cannot be read or written.
    """
    by_line, left, rest = name.startswith("WINDOWS") or name == encoding.CESU, most, b""
    decoder = None if by_line else codecs.getincrementaldecoder(name)("replace")
    with open_bytes(path) as source, open(target, "w", encoding="utf-8", newline="") as file:
        while True:
            try:
                data = source.read(min(_STEP, left))
            except CorruptArchive:
                return False
            left -= len(data)
            is_last = not data or not left
            if decoder is None:
                lines = (rest + data).split(b"\n")
                rest = b"" if is_last else lines.pop()
                text = "\n".join(_line(line, name) for line in lines)
                text += "" if is_last else "\n"
            else:
                text = decoder.decode(data, not data)
            if data and is_last:
                text = text[: text.rfind("\n") + 1]
            file.write(text)
            if is_last:
                return not data


def _line(line: bytes, name: str) -> str:
    return line.decode() if encoding.is_utf8(line) else encoding.decoded(line, name)


def _later_lines(stream: BinaryIO) -> list[bytes]:
    """Return lines of the middle and of the end of a plain file."""
    found: list[bytes] = []
    size = stream.seek(0, os.SEEK_END)
    for start in (size // 2, size - _HEAD):
        stream.seek(max(0, start))
        found += stream.read(_HEAD).split(b"\n")[1:-1]
    return found


def _begins_with_utf8(line: bytes) -> bool:
    """Return whether a line, whose last character may be cut, is UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(line)
    except UnicodeDecodeError:
        return False
    return True
