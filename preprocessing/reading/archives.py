"""Decompress bz2, gzip and zstd as a stream that returns the content before any damage.

Beam chooses the decoder by the name of the file, and accepts a truncated file silently. This module
chooses the decoder by the first bytes, and raises `CorruptArchive`. The readers of the standard
library do not suffice: `bz2.BZ2File` ignores garbage after the first member, and both `bz2.BZ2File`
and `gzip.GzipFile` lose the content of the read that detects the damage. This module loses at most
one step of 8 KiB of the archive and the damaged block: up to 900 kB of text in bz2, and 128 KiB in
zstd.

An unfinished download is often a file of its final size whose rest is NUL. The decoder of gzip
takes such bytes for repetitions of the text before them, without an error. A text that repeats a
line, such as `;;;` for each empty row of a spreadsheet, has such bytes too, so the checksum at the
end decides.
"""

from __future__ import annotations

import bz2
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import zstandard

_STEP = 1 << 13
"""Compressed bytes of a step. The decoders do not limit their output, so their input is small."""
_LEAST_FILLING = 512
"""The least number of equal bytes, NUL or 0xFF, that a program wrote in place of the data."""
_MOST_REPEATED = 1 << 18
"""The greatest number of such bytes in a row that may be data: up to 270 MB of text."""
_FILLING = re.compile(rb"\0{%d,}|\xff{%d,}" % (_LEAST_FILLING, _LEAST_FILLING))
_ZSTD_WINDOW = 1 << 31  # the largest window that zstd's `--long` option writes

_MAGIC = {b"BZh": "bz2", b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# A zstd file may start with a skippable frame, as those of pzstd do. RFC 8878 gives it 16 magic
# numbers, 0x184D2A50 to 0x184D2A5F, which are stored with their lowest byte first.
_MAGIC |= {bytes([0x50 + number, 0x2A, 0x4D, 0x18]): "zstd" for number in range(16)}
_SUFFIXES = {".bz2": "bz2", ".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
MAGIC_BYTES = 4  # the bytes at the start of a file that `compression` needs


class CorruptArchive(Exception):
    """A compressed file that is damaged or truncated, detected while reading it.

    Args:
      path: the path of the file.
      position: the byte of the compressed file at which the damage was detected.
      why: the problem, such as `damaged`.
      delivered: see below.

    Attributes:
      path: the path of the file.
      delivered: number of bytes of the compressed file whose content was read. The content of up to
        8 KiB more may have been read too.
      detail: the problem and its position, without the name of the file.
    """

    def __init__(self, path: str, position: int, why: str, delivered: int = 0) -> None:
        # A Beam worker can pickle the error only if the base class gets all arguments.
        super().__init__(path, position, why, delivered)
        self.path = path
        self.delivered = delivered
        self.detail = f"{why} at byte {position:,} of the compressed file"

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"


def compression(path: str, head: bytes) -> str | None:
    """Return the compression of a file, `bz2`, `gzip` or `zstd`; None for a plain file.

    Args:
      path: the path of the file. A file with fewer than `MAGIC_BYTES` bytes counts as a truncated
        archive if its name ends like that of an archive.
      head: the first `MAGIC_BYTES` bytes of the file.
    """
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if len(head) >= MAGIC_BYTES:
        return None
    return next((of for end, of in _SUFFIXES.items() if path.lower().endswith(end)), None)


class _Codec(NamedTuple):
    """A decoder of one member of an archive, and its errors."""

    new_decoder: Callable[[], Any]
    errors: tuple[type[Exception], ...]
    padding: bytes = b""  # the bytes that may follow a member; tapes add zeros
    decodes_filling: bool = False  # whether it finds no error in bytes that are all equal


_CODECS = {
    "bz2": _Codec(bz2.BZ2Decompressor, (OSError, ValueError, EOFError)),
    "gzip": _Codec(lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), (zlib.error,), b"\0", True),
    "zstd": _Codec(
        lambda: zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj(),
        (zstandard.ZstdError,),
    ),
}


class DecompressedStream(io.RawIOBase):
    """The content of an archive. `read(n)` returns n bytes, or fewer at the end.

    Args:
      path: the path of the archive, for the error.
      raw: the bytes of the archive. Closing this object closes `raw`.
      kind: the compression, as `compression` returns it.

    Attributes:
      damage: the error of the damage; `read` raises it after all content before the damage has been
        read. None if no damage was found so far.
    """

    def __init__(self, path: str, raw: BinaryIO, kind: str) -> None:
        self._raw = raw
        self._steps = _decompress(path, raw, _CODECS[kind])
        self._content = bytearray()
        self.damage: CorruptArchive | None = None

    def read(self, size: int | None = -1) -> bytes:
        """Return the next `size` bytes, or fewer at the end.

        Args:
          size: number of bytes; None or a negative number: all.

        Raises:
          CorruptArchive: the archive is damaged, and all content before the damage has been read.
        """
        wanted = sys.maxsize if size is None or size < 0 else size
        try:
            while len(self._content) < wanted:
                self._content += next(self._steps)
        except StopIteration:
            pass
        except CorruptArchive as damage:
            self.damage = damage
        if wanted and not self._content and self.damage:
            raise self.damage
        found = bytes(self._content[:wanted])
        del self._content[:wanted]
        return found

    def stored(self) -> int:
        """Return the number of bytes of the archive that were read so far."""
        return self._raw.tell()

    def close(self) -> None:
        self._raw.close()
        super().close()


def _decompress(path: str, raw: BinaryIO, codec: _Codec) -> Iterator[bytes]:
    delivered = 0  # all content before this byte of the compressed file has been returned
    decoder, data = None, b""
    is_whole = False  # whether the checksum of this member was found to be right
    while data := data or raw.read(_STEP):
        if delivered and not decoder and not (data := data.lstrip(codec.padding)):
            continue
        start = raw.tell() - len(data)
        decoder = decoder or codec.new_decoder()
        filling = None
        if codec.decodes_filling and not is_whole:
            filling = _find_filling(data, raw)
            if filling is not None and _ends_correctly(decoder, data, raw):
                filling, is_whole = None, True
        try:
            content = decoder.decompress(data[:filling])
            # If the data end with a block of bz2, one call returns only 32 KiB of it.
            while not decoder.eof and (rest := decoder.decompress(b"")):
                content += rest
        except codec.errors:
            raise CorruptArchive(path, start, "damaged", delivered) from None
        yield content
        if filling is not None:
            why = f"filled with {'NUL' if data[filling] == 0 else '0xFF'}"
            raise CorruptArchive(path, start + filling, why, start + filling)
        data = decoder.unused_data
        if decoder.eof:
            decoder, is_whole, delivered = None, False, raw.tell() - len(data)
        elif content:  # of complete blocks; an incomplete one begins in this step
            delivered = start
    if decoder or not delivered:
        raise CorruptArchive(path, raw.tell(), "truncated", delivered)


def _find_filling(data: bytes, raw: BinaryIO) -> int | None:
    """Return where bytes begin that may be in place of the data of gzip; None without any.

    Args:
      data: the next bytes of the archive.
      raw: the archive, at the end of `data`.
    """
    following = b""
    if data.endswith((b"\0", b"\xff")):
        following = raw.read(_LEAST_FILLING)
        raw.seek(-len(following), io.SEEK_CUR)
    found = _FILLING.search(data + following)
    return None if found is None else found.start()


def _ends_correctly(decoder: Any, data: bytes, raw: BinaryIO) -> bool:
    """Return whether the rest of a member of gzip is intact, by its checksum.

    Args:
      decoder: the decoder of the member, which is left as it is.
      data: the next bytes of the member, and perhaps bytes behind its end.
      raw: the archive, at the end of `data`; it is left there.
    """
    trial, end = decoder.copy(), raw.tell()
    repeated = 0  # the number of equal bytes in a row, as far as they are whole steps
    try:
        while data and not trial.eof and repeated <= _MOST_REPEATED:
            trial.decompress(data)
            repeated = repeated + len(data) if data == data[:1] * len(data) else 0
            data = raw.read(_STEP)
    except zlib.error:
        return False
    finally:
        raw.seek(end)
    return trial.eof
