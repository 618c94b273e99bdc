"""Decompress bz2 block by block: from any position of a file, and on every core.

A bz2 file is a sequence of blocks of at most 900 kB of content, each with its own checksum. A block
starts with a mark of 48 bits, at any bit of the file, and does not depend on the blocks before it.
So a block can be found by its mark, and damage affects only the blocks that contain it. About once
in 10^14 bits a block contains the bits of a mark, and counts as damaged.
"""

from __future__ import annotations

import bz2
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, NamedTuple

_MARK, _END = 0x314159265359, 0x177245385090
_MARK_BITS, _CRC_BITS = 48, 32
_HEADER = b"BZh9"
_STREAMS = re.compile(rb"(BZh[1-9]\x17rE8P\x90\0\0\0\0)*")  # streams without content
_STREAMS_AND_HEADER = re.compile(_STREAMS.pattern + rb"BZh[1-9]")
_READ = 1 << 22
_TAIL = 1 << 9  # bytes before a mark that are searched for the end of the previous stream
_LONGEST = 1 << 21  # bytes; every compressed block is shorter
_ERRORS = (OSError, EOFError, ValueError)
DAMAGED, TRUNCATED = "damaged", "damaged or truncated"


class Block(NamedTuple):
    """The decompressed content of a block, or a damaged part of a file."""

    at: int  # the bit of the file at which the last mark starts
    data: bytes
    damage: str | None = None  # DAMAGED or TRUNCATED
    position: int = 0  # the byte of the file before which the damage was detected
    lost: int = 0  # the size of the damaged part in bytes


_Decoder = Callable[[bytes, int, int], bytes | None]
"""A function with the arguments and the result of `_decompress`."""


class _Span(NamedTuple):
    """The bits `at` to `until` of a file: from one mark to the next one or the end of the file."""

    at: int
    until: int
    data: bytes  # the bytes that contain these bits
    last: bool


def read_blocks(
    raw: BinaryIO, start: int, pool: ThreadPoolExecutor, ahead: int, *, compiled: bool = False
) -> Iterator[Block]:
    """Yield the blocks of a bz2 file whose marks start at byte `start` or later, in order.

    Damage is reported as a block without content, not as an exception.

    Args:
      raw: the compressed file, which is seekable.
      start: a byte of the file; if it is 0, the header of the file is checked as well.
      pool: the threads that decompress the blocks.
      ahead: number of blocks that are decompressed before the caller requests them.
      compiled: whether compiled loops decompress the blocks, in half of the time that libbz2 takes.
        They take 0.5 s to load, and 5 s to compile after an installation.

    Raises:
      OSError: `raw` cannot be read; a remote file raises the errors of its file system.
    """
    decode: _Decoder | None = None
    if compiled:
        # Numba takes 0.2 s to import, and most processes do without it.
        from preprocessing.fast.bz2_decoder import decode_block as decode
    waiting: deque[Future[list[Block]]] = deque()
    spans = _spans(raw, start)
    try:
        while True:
            while len(waiting) <= ahead and (span := next(spans, None)):
                waiting.append(pool.submit(_read_span, span, decode))
            if not waiting:
                return
            yield from waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def find_marks(data: bytes, mark: int = _MARK) -> list[int]:
    """Return the positions of marks in `data`, in bits, ascending.

    Args:
      data: a part of a file.
      mark: the 48 bits of the mark; by default the mark at the start of a block.
    """
    found = []
    for shift in range(8):
        # A mark that starts at this bit of a byte fills the next five bytes completely.
        inner = (mark << (8 - shift)).to_bytes(7, "big")[1:6]
        at = data.find(inner, 1)
        while at >= 0:
            around = int.from_bytes(data[at - 1 : at + 6].ljust(7, b"\0"), "big")
            bit = (at - 1) * 8 + shift
            whole = bit + _MARK_BITS <= len(data) * 8
            if whole and around >> (8 - shift) & ((1 << _MARK_BITS) - 1) == mark:
                found.append(bit)
            at = data.find(inner, at + 1)
    return sorted(found)


def _spans(raw: BinaryIO, start: int) -> Iterator[_Span]:
    """Yield the spans from the first mark on; if `start` is 0, from the beginning of the file."""
    raw.seek(start)
    data, base = b"", start  # the part of the file in memory, and the byte at which it starts
    at = None if start else 0  # the start of the span whose end is not found yet
    searched = 0  # bytes of `data` that have been searched for marks

    def span(until: int, last: bool = False) -> _Span:
        assert at is not None
        return _Span(at, until, data[(at >> 3) - base : ((until + 7) >> 3) - base], last)

    while more := raw.read(_READ):
        data += more
        offset = max(0, searched - _MARK_BITS // 8)
        for bit in find_marks(data[offset:]):
            mark = (base + offset) * 8 + bit
            if at is not None and mark > at:
                yield span(mark)
            at = mark
        end = base + len(data)
        if at is not None and end - (at >> 3) > _LONGEST + _READ:
            yield span(end * 8)
            at = None
        keep = at >> 3 if at is not None else max(base, end - _MARK_BITS // 8)
        data, base = data[keep - base :], keep
        searched = len(data)
    if at is not None:
        yield span((base + len(data)) * 8, last=True)


def _read_span(span: _Span, decode: _Decoder | None) -> list[Block]:
    """Return the block of a span, and the damage in the span.

    Args:
      span: the span.
      decode: the function that decompresses blocks faster than libbz2; None: libbz2 does.
    """
    start, until = span.at & 7, (span.at & 7) + span.until - span.at
    if _number(span.data, start, min(start + _MARK_BITS, until)) != _MARK:
        # The beginning of the file.
        return _check_rest(span, 0) or [Block(span.at, b"")]
    for bits in _ends(span):
        if bits < _MARK_BITS + _CRC_BITS:
            continue  # between two marks of damaged bytes
        end = start + bits
        content = decode(span.data, start, end) if decode else None
        if content is None:
            content = _decompress(span.data, start, end)
        if content is not None:
            rest = (end + _MARK_BITS + _CRC_BITS + 7) // 8
            return [Block(span.at, content), *(_check_rest(span, rest) if end < until else [])]
    return [_damage(span, len(span.data))]


def _number(data: bytes, at: int, until: int) -> int:
    """Return the number in the bits `at` to `until` of `data`."""
    value = int.from_bytes(data[at >> 3 : (until + 7) >> 3], "big") >> (-until & 7)
    return value & ((1 << (until - at)) - 1)


def _ends(span: _Span) -> Iterator[int]:
    """Yield the possible lengths of the block of a span in bits, the likely ones first."""
    lead = span.at & 7
    tail = max(0, len(span.data) - _TAIL)
    likely = [tail * 8 + bit - lead for bit in find_marks(span.data[tail:], _END)]
    yield from likely
    if not span.last:
        yield span.until - span.at
    if not likely:
        for bit in find_marks(span.data, _END):
            yield bit - lead


def _decompress(data: bytes, at: int, until: int) -> bytes | None:
    """Return the content of the block in the bits `at` to `until` of `data`, by libbz2.

    The block is decompressed as a bz2 file of its own. None: it is damaged.
    """
    bits = until - at
    block = _number(data, at, until)
    checksum = block >> (bits - _MARK_BITS - _CRC_BITS) & ((1 << _CRC_BITS) - 1)
    end = (_END << _CRC_BITS) | checksum
    bits += _MARK_BITS + _CRC_BITS
    stream = ((block << (_MARK_BITS + _CRC_BITS)) | end) << (-bits & 7)
    decoder = bz2.BZ2Decompressor()
    try:
        content = decoder.decompress(_HEADER + stream.to_bytes((bits + 7) >> 3, "big"))
    except _ERRORS:
        return None
    return content if decoder.eof else None


def _check_rest(span: _Span, start: int) -> list[Block]:
    """Return the damage in a span after its block; an empty list without damage.

    After a block there may be streams without content and, unless the file ends, the header of the
    next stream.

    Args:
      span: the span.
      start: the byte of the span at which its block ends.
    """
    rest = span.data[start:]
    is_whole = start <= len(span.data) and span.data and (span.last or span.until % 8 == 0)
    valid = _STREAMS if span.last else _STREAMS_AND_HEADER
    return [] if is_whole and valid.fullmatch(rest) else [_damage(span, len(rest))]


def _damage(span: _Span, lost: int) -> Block:
    why = TRUNCATED if span.last else DAMAGED
    return Block(span.at, b"", why, (span.until + 7) // 8, lost)
