"""Decompress bz2, gzip and zstd as a stream that returns all content before any damage.

Beam's own decompression chooses by the name of the file, and accepts a truncated file silently.
This module chooses by the first bytes of the file, and raises `CorruptArchive`. The readers of the
standard library do not suffice: `bz2.BZ2File` ignores garbage behind the first member, and both it
and `gzip.GzipFile` lose the content of the read that finds the damage.
"""

from __future__ import annotations

import bz2
import contextlib
import io
import sys
import zlib
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO, Protocol

from core.errors import InputError

_READ = 1 << 16  # compressed bytes per step
_PIECE = 1 << 20  # most bytes that one step of decompression returns
_ZSTD_STEP = 1 << 12  # the zstd decoder has no limit for its output, so its input is small
_ZSTD_WINDOW = 1 << 31  # the largest window that zstd's `--long` option writes

_MAGIC = {b"BZh": "bz2", b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
# A zstd file may start with a skippable frame, as those of pzstd do. RFC 8878 gives it 16 magic
# numbers, 0x184D2A50 to 0x184D2A5F, which are stored with their lowest byte first.
_MAGIC |= {bytes([0x50 + number, 0x2A, 0x4D, 0x18]): "zstd" for number in range(16)}
SUFFIXES = (".bz2", ".gz", ".zst", ".zstd")
"""The suffixes of the names of archives; `compression` detects the kind by the first bytes."""
MAGIC_BYTES = 4  # the bytes at the start of a file that `compression` needs


class CorruptArchive(Exception):
    """A damaged or truncated compressed file, detected while reading it.

    Attributes:
        path: the compressed file.
        position: the number of bytes of the compressed file that were read before the damage was
            detected.
        why: what is wrong there, such as "truncated".
    """

    def __init__(self, path: str, position: int, why: str) -> None:
        # A Beam worker can pickle the error only if the base class gets all three arguments.
        super().__init__(path, position, why)
        self.path = path
        self.position = position
        self.why = why

    def __str__(self) -> str:
        return f"{self.path}: {self.detail}"

    @property
    def detail(self) -> str:
        """The problem and its position, without the name of the file."""
        return f"{self.why} at byte {self.position:,} of the compressed file"


class _Decoder(Protocol):
    """A decoder of a single member of an archive."""

    errors: tuple[type[Exception], ...]  # the errors that `feed` raises on damaged data
    padding: bytes  # the byte that may fill the space between members
    eof: bool
    unused: bytes  # the input after the end of the member

    def feed(self, data: bytes) -> Iterator[bytes]: ...


class _Bz2:
    errors: tuple[type[Exception], ...] = (OSError, ValueError, EOFError)
    padding = b""

    def __init__(self) -> None:
        self._inner = bz2.BZ2Decompressor()
        self.eof = False
        self.unused = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            yield self._inner.decompress(data, _PIECE)
            if self._inner.eof or self._inner.needs_input:
                break
            data = b""
        self.eof, self.unused = self._inner.eof, self._inner.unused_data


class _Gzip:
    errors: tuple[type[Exception], ...] = (zlib.error,)
    padding = b"\0"  # tools for tapes and block devices append zeros

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self.eof = False
        self.unused = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        while True:
            piece = self._inner.decompress(data, _PIECE)
            yield piece
            data = self._inner.unconsumed_tail
            # After a full piece zlib's own buffer may hold more content although no input is left.
            if self._inner.eof or not (data or len(piece) == _PIECE):
                break
        self.eof, self.unused = self._inner.eof, self._inner.unused_data


class _Zstd:
    padding = b""

    def __init__(self) -> None:
        import zstandard

        self.errors: tuple[type[Exception], ...] = (zstandard.ZstdError,)
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._inner: Any = frame.decompressobj()
        self.eof = False
        self.unused = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_STEP):
            yield self._inner.decompress(data[start : start + _ZSTD_STEP])
            if self._inner.eof:
                self.eof = True
                self.unused = self._inner.unused_data + data[start + _ZSTD_STEP :]
                break


_DECODERS: dict[str, type[_Decoder]] = {"bz2": _Bz2, "gzip": _Gzip, "zstd": _Zstd}


def compression(path: str, head: bytes) -> str | None:
    """Return the compression of a file by its first `MAGIC_BYTES` bytes; None for a plain file.

    Raises:
        InputError: the file is compressed with zstd, and the package for it is not installed.
        CorruptArchive: the file has the name of an archive but is too short to be one.
    """
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return _importable(path, kind)
    if len(head) < MAGIC_BYTES and path.lower().endswith(SUFFIXES):
        raise CorruptArchive(path, len(head), "truncated before the end of its header,")
    return None


def _importable(path: str, kind: str) -> str:
    if kind == "zstd":
        try:
            import zstandard  # noqa: F401
        except ImportError:
            raise InputError(
                f"{path} is compressed with zstd: install the package `zstandard` to read it"
            ) from None
    return kind


class DecompressedStream(io.RawIOBase):
    """The content of an archive. `read(n)` returns n bytes, or fewer at the end.

    Reading raises `CorruptArchive` after all content before the damage has been read.
    """

    def __init__(self, path: str, raw: BinaryIO, kind: str) -> None:
        self._raw = raw
        self._pieces = _decompress(path, raw, _DECODERS[kind])
        self._left = b""
        self.damage: CorruptArchive | None = None
        """The error that reading has raised, or is about to raise."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        wanted = sys.maxsize if size is None or size < 0 else size
        parts = []
        while wanted and (self._left or self._fill()):
            part = self._left[:wanted]
            self._left = self._left[len(part) :]
            wanted -= len(part)
            parts.append(part)
        if wanted and not parts and self.damage:
            raise self.damage
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._raw.close()
        super().close()

    def _fill(self) -> bool:
        """Fetch the next bytes; return False at the end or at damage, and store the damage."""
        try:
            self._left = next((piece for piece in self._pieces if piece), b"")
        except CorruptArchive as damage:
            self.damage = damage
        return bool(self._left)


def _decompress(path: str, raw: BinaryIO, new_decoder: type[_Decoder]) -> Iterator[bytes]:
    at = 0  # the position of `raw` in the compressed file
    start = given = 0  # the start of the current member; the bytes of its content yielded so far
    decoder: _Decoder | None = None
    while data := raw.read(_READ):
        before, at = at, at + len(data)
        while data:
            if decoder is None:
                decoder = new_decoder()
                start, given = at - len(data), 0
            try:
                for piece in decoder.feed(data):
                    given += len(piece)
                    yield piece
            except decoder.errors:
                at = yield from _salvage(raw, new_decoder(), start, max(before, start), given)
                raise CorruptArchive(path, at, "damaged") from None
            data = decoder.unused
            if decoder.eof:
                padding, decoder = decoder.padding, None
                data = _skip_padding(raw, data, padding)
                at = raw.tell()
    if decoder is not None:
        raise CorruptArchive(path, at, "truncated")


def _skip_padding(raw: BinaryIO, data: bytes, padding: bytes) -> bytes:
    data = data.lstrip(padding)
    while padding and not data:
        following = raw.read(_READ)
        if not following:
            break
        data = following.lstrip(padding)
    return data


def _salvage(
    raw: BinaryIO, decoder: _Decoder, start: int, bytewise_from: int, given: int
) -> Generator[bytes, None, int]:
    """Decompress a damaged member again, to recover the content directly before the damage.

    A decoder that fails discards the content of its last step, up to 64 KiB of the archive. So the
    member is decompressed again from the position `start`, and byte by byte from `bytewise_from`
    on. The first `given` bytes of its content have been yielded before, and are skipped.

    Returns:
        The position of the first damaged byte.
    """
    raw.seek(start)
    at = start
    with contextlib.suppress(*decoder.errors):
        while data := raw.read(min(_READ, bytewise_from - at) if at < bytewise_from else 1):
            at += len(data)
            for piece in decoder.feed(data):
                yield piece[given:]
                given = max(0, given - len(piece))
    return at
