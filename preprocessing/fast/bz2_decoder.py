"""Decompress a block of bz2 in compiled loops, in half of the time that libbz2 takes.

A block is what bzip2 writes for at most 900 kB of content, in these steps: runs of a byte are
shortened, the Burrows-Wheeler transform sorts the bytes by what follows them, each byte is replaced
by its place in a list of recent bytes (move to front), and the places are written as Huffman codes.
The functions here invert these steps, the last one first. The format is described in Tsai, "BZIP2:
Format Specification" (2016).

The inverse of the Burrows-Wheeler transform follows a chain of links through 3.6 MB, one for each
byte. The processor waits for each link, which is half of the time of libbz2. Here the chain is cut
at every 1,024th row, and several parts of it are followed at the same time, in any order. At last
the parts are put in order.

The compiled code does not check the bounds of arrays, so each number of a block is checked before
it is an index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from preprocessing.fast.compiled import compiled, part

_MOST = 900_000
"""The greatest number of bytes of a block before its runs are expanded."""
_MARK_BITS, _CRC_BITS = 48, 32
_LONGEST_CODE = 20
_MOST_TABLES = 6
_MOST_SYMBOLS = 258
_MOST_GROUPS = 1 << 15
_GROUP = 50
"""Symbols that are written with the same table of codes."""
_LOOKUP_BITS = 10
"""A code of at most this length is found by one lookup of the next bits."""
_RUN_A, _RUN_B = 0, 1
"""The digits of the length of a run of the first byte in the list of recent ones."""
_PADDING = 256
"""Bytes after the data, which cover the bits that are read before the end is checked."""
_STRIDE = 1024
"""Every row with a multiple of this number begins a part of the chain."""
_PARTS = 8
"""Parts of the chain that are followed at the same time; with 4 the step takes a quarter longer."""
_LINK_BITS = 20
_BYTE_BITS = 8
_ENDS_PART = np.uint32(1 << 31)
_FAILED = -1


class _Codes(NamedTuple):
    """The Huffman codes of the tables of a block.

    Attributes:
      lookup: the symbol << 4 | the length of the code with which these _LOOKUP_BITS begin; 0 if the
        code is longer. uint16 [tables, 2 ** _LOOKUP_BITS].
      limits: the first number of each length that is not a code, int64 [tables, lengths].
      offsets: the place in `symbols` of a code of each length, minus the code.
      symbols: the symbols by code, uint16 [tables, symbols].
    """

    lookup: np.ndarray
    limits: np.ndarray
    offsets: np.ndarray
    symbols: np.ndarray


class _Header(NamedTuple):
    """What precedes the symbols of a block.

    Attributes:
      end: the bit after it; _FAILED: the block is damaged.
      origin: the row of the original text.
      groups: the number of groups of symbols.
      symbols: the number of different symbols.
    """

    end: int
    origin: int
    groups: int
    symbols: int


def decode_block(data: bytes, at: int, until: int) -> bytes | None:
    """Return the content of a block.

    Args:
      data: a part of a file.
      at: the bit of `data` at which the mark of the block starts.
      until: the bit after the last one of the block.

    Returns:
      The content; None if the block is damaged, or of a kind that no program has written since
      1996, which libbz2 can read.
    """
    padded = data + bytes(-len(data) % 4 + _PADDING)
    words = np.frombuffer(padded, ">u4").astype(np.uint32)
    codes = _Codes(
        np.zeros((_MOST_TABLES, 1 << _LOOKUP_BITS), np.uint16),
        np.zeros((_MOST_TABLES, _LONGEST_CODE + 1), np.int64),
        np.zeros((_MOST_TABLES, _LONGEST_CODE + 1), np.int64),
        np.zeros((_MOST_TABLES, _MOST_SYMBOLS), np.uint16),
    )
    selectors, recent = np.empty(_MOST_GROUPS, np.uint8), np.empty(256, np.uint8)
    header = _read_header(words, at, until, codes, selectors, recent)
    if header.end == _FAILED:
        return None
    sorted_bytes, counts = np.empty(_MOST, np.uint8), np.zeros(256, np.int64)
    size = _sort(words, until, header, codes, selectors, recent, sorted_bytes, counts)
    if size <= header.origin:
        return None
    text = np.empty(size, np.uint8)
    links = np.empty(size, np.uint32)
    first = _link(sorted_bytes, counts, header.origin, links)
    _follow(links, first, np.empty(_PARTS * size, np.uint8), text)
    content = np.empty(_expanded_size(text), np.uint8)
    _expand(text, content)
    if _checksum(content, _CHECKSUMS) != _bits(words, at + _MARK_BITS, _CRC_BITS):
        return None
    return content.tobytes()


@compiled
def _bits(words: np.ndarray, at: int, count: int) -> int:
    """Return `count` bits, at most 32, from bit `at` on."""
    word = at >> 5
    both = np.uint64(words[word]) << np.uint64(32) | np.uint64(words[word + 1])
    mask = np.uint64((1 << count) - 1)
    return _signed(both >> np.uint64(64 - (at & 31) - count) & mask)


@part
def _signed(value: Any) -> int:
    # Numba computes with an unsigned and a signed number of 64 bits in floating point.
    found: Any = np.int64(value)
    return found


@part
def _used_bytes(words: np.ndarray, at: int, used: np.ndarray) -> tuple[int, int]:
    """Write the bytes that a block contains to `used`, ascending.

    Returns:
      Their number, and the bit after the map of them.
    """
    rows = _bits(words, at, 16)
    at += 16
    number = 0
    for row in range(16):
        if rows >> (15 - row) & 1:
            columns = _bits(words, at, 16)
            at += 16
            for column in range(16):
                if columns >> (15 - column) & 1:
                    used[number] = row * 16 + column
                    number += 1
    return number, at


@part
def _read_selectors(
    words: np.ndarray, at: int, until: int, tables: int, groups: int, selectors: np.ndarray
) -> int:
    """Read the number of the table of each group; return the bit after them, or _FAILED."""
    recent = np.empty(_MOST_TABLES, np.int64)
    for table in range(_MOST_TABLES):
        recent[table] = table
    for group in range(groups):
        place = 0
        while _bits(words, at, 1):
            place += 1
            at += 1
            if place >= tables:
                return _FAILED
        at += 1
        if at > until:
            return _FAILED
        _move_to_front(recent, place)
        selectors[group] = recent[0]
    return at


@part
def _move_to_front(values: np.ndarray, place: int) -> None:
    value = values[place]
    while place > 0:
        values[place] = values[place - 1]
        place -= 1
    values[0] = value


@part
def _fill(values: np.ndarray, start: int, end: int, value: int) -> None:
    # Numba compiles an assignment to a slice for a second, and a loop for milliseconds.
    for index in range(start, end):
        values[index] = value


@part
def _read_codes(
    words: np.ndarray, at: int, until: int, table: int, codes: _Codes, symbols: int
) -> int:
    """Read a table of codes for all symbols; return the bit after it, or _FAILED."""
    lengths = np.empty(_MOST_SYMBOLS, np.int64)
    length = _bits(words, at, 5)
    at += 5
    for symbol in range(symbols):
        while _bits(words, at, 1):
            length += 1 - 2 * _bits(words, at + 1, 1)
            at += 2
            if at > until or not 1 <= length <= _LONGEST_CODE:
                return _FAILED
        at += 1
        if at > until or not 1 <= length <= _LONGEST_CODE:
            return _FAILED
        lengths[symbol] = length
    code, place = 0, 0
    for length in range(1, _LONGEST_CODE + 1):
        codes.offsets[table, length] = place - code
        for symbol in range(symbols):
            if lengths[symbol] != length:
                continue
            if code >= 1 << length:
                return _FAILED
            codes.symbols[table, place] = symbol
            if length <= _LOOKUP_BITS:
                first = code << (_LOOKUP_BITS - length)
                after = (code + 1) << (_LOOKUP_BITS - length)
                _fill(codes.lookup[table], first, after, symbol << 4 | length)
            code += 1
            place += 1
        codes.limits[table, length] = code
        code <<= 1
    return at


@compiled
def _read_header(
    words: np.ndarray,
    at: int,
    until: int,
    codes: _Codes,
    selectors: np.ndarray,
    recent: np.ndarray,
) -> _Header:
    """Read what precedes the symbols of a block.

    Args:
      words: the data in words of 32 bits, uint32, with a padding.
      at: the bit at which the block starts.
      until: the bit after the last one of the block.
      codes: the codes, which are written.
      selectors: the table of each group, uint8 [_MOST_GROUPS], which is written.
      recent: the bytes that the block contains, uint8 [256], which is written.
    """
    failed = _Header(_FAILED, 0, 0, 0)
    at += _MARK_BITS + _CRC_BITS
    # Before 1996 the content of a block could be mixed with random numbers.
    if _bits(words, at, 1):
        return failed
    origin = _bits(words, at + 1, 24)
    used, at = _used_bytes(words, at + 25, recent)
    tables, groups = _bits(words, at, 3), _bits(words, at + 3, 15)
    if not used or not 2 <= tables <= _MOST_TABLES:
        return failed
    at = _read_selectors(words, at + 18, until, tables, groups, selectors)
    for table in range(tables):
        if at != _FAILED:
            at = _read_codes(words, at, until, table, codes, used + 2)
    return _Header(at, origin, groups, used + 2)


@compiled
def _sort(
    words: np.ndarray,
    until: int,
    header: _Header,
    codes: _Codes,
    selectors: np.ndarray,
    recent: np.ndarray,
    found: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Write the bytes as the transform sorted them; return their number, or _FAILED.

    Args:
      words: the data in words of 32 bits, uint32, with a padding.
      until: the bit after the last one of the block.
      header: the result of `_read_header`, as the next three arguments.
      codes: the codes.
      selectors: the table of each group.
      recent: the bytes that the block contains, which become the list of recent ones.
      found: an array for the bytes, uint8 [_MOST].
      counts: the number of each byte, int64 [256], which is added to.
    """
    at, symbols = header.end, header.symbols
    size, run, digit = 0, 0, 1
    # `known` bits, at least 32, of the data before `word` are in `ahead`.
    word = (at >> 5) + 2
    ahead = np.uint64(words[word - 2]) << np.uint64(32) | np.uint64(words[word - 1])
    known = 64 - (at & 31)
    for group in range(header.groups):
        table = selectors[group]
        if word * 32 - known > until:
            return _FAILED
        lookup = codes.lookup[table]
        for _ in range(_GROUP):
            if known < 32:
                ahead = ahead << np.uint64(32) | np.uint64(words[word])
                word += 1
                known += 32
            next_bits = ahead >> np.uint64(known - _LOOKUP_BITS)
            entry = _signed(lookup[_signed(next_bits & np.uint64((1 << _LOOKUP_BITS) - 1))])
            symbol, length = entry >> 4, entry & 15
            if not entry:
                symbol, length = _long_code(ahead, known, table, codes, symbols)
                if symbol == _FAILED:
                    return _FAILED
            known -= length
            if symbol <= _RUN_B:
                run += digit << symbol
                digit <<= 1
                if run > _MOST:
                    return _FAILED
                continue
            if run:
                if size + run > _MOST:
                    return _FAILED
                _fill(found, size, size + run, recent[0])
                counts[recent[0]] += run
                size += run
                run, digit = 0, 1
            if symbol == symbols - 1:
                # The last symbol is the end of the block.
                return size if word * 32 - known == until else _FAILED
            if size == _MOST:
                return _FAILED
            _move_to_front(recent, symbol - 1)
            found[size] = recent[0]
            counts[recent[0]] += 1
            size += 1
    return _FAILED


@part
def _long_code(
    ahead: np.uint64, known: int, table: int, codes: _Codes, symbols: int
) -> tuple[int, int]:
    """Return the symbol of a code of more than _LOOKUP_BITS, or _FAILED, and the code's length."""
    for length in range(_LOOKUP_BITS + 1, _LONGEST_CODE + 1):
        code = _signed(ahead >> np.uint64(known - length) & np.uint64((1 << length) - 1))
        if code < codes.limits[table, length]:
            place = code + codes.offsets[table, length]
            if not 0 <= place < symbols:
                break
            return _signed(codes.symbols[table, place]), length
    return _FAILED, 0


@compiled
def _link(sorted_bytes: np.ndarray, counts: np.ndarray, origin: int, links: np.ndarray) -> int:
    """Write the byte of each row and the row of the byte after it.

    A link is the row << 8 | the byte, with _ENDS_PART if the row begins a part of the chain.

    Args:
      sorted_bytes: the bytes in the order of the transform, uint8 [size] or longer.
      counts: the number of each byte, int64 [256], which is overwritten.
      origin: the row of the original text.
      links: an array for the links, uint32 [size].

    Returns:
      The row of the first byte of the text.
    """
    before = 0
    for byte in range(256):
        count = counts[byte]
        counts[byte] = before
        before += count
    for row in range(len(links)):
        links[row] = sorted_bytes[row]
    for row in range(len(links)):
        byte = sorted_bytes[row]
        place = counts[byte]
        links[place] |= np.uint32(row << _BYTE_BITS)
        if row % _STRIDE == 0:
            links[place] |= _ENDS_PART
        counts[byte] = place + 1
    links[origin] |= _ENDS_PART
    return _next_row(links[origin])


@part
def _next_row(link: np.uint32) -> int:
    return _signed(link >> np.uint32(_BYTE_BITS) & np.uint32((1 << _LINK_BITS) - 1))


@compiled
def _follow(links: np.ndarray, first: int, written: np.ndarray, text: np.ndarray) -> None:
    """Write the text of which `links` is the chain.

    A part of the chain begins at each row that is a multiple of _STRIDE, and at `first`. Its number
    is the quotient; that of `first`, if it is no multiple, is the next one.

    Args:
      links: the links, see `_link`, uint32 [size].
      first: the row of the first byte of the text.
      written: an array for the bytes of all parts, uint8 [_PARTS * size].
      text: an array for the text, uint8 [size].
    """
    size = len(links)
    multiples = (size + _STRIDE - 1) // _STRIDE
    is_extra = first % _STRIDE != 0
    parts = multiples + is_extra
    first_part = multiples if is_extra else first // _STRIDE
    begins, ends = np.empty(parts, np.int64), np.empty(parts, np.int64)
    following = np.empty(parts, np.int64)
    # Each of some parts at a time has its own area of `written`; a part that ends there is followed
    # by another one. There are no more bytes than rows in all of them, so no area is too small.
    together = min(_PARTS, parts)
    part_of, place = np.empty(together, np.int64), np.empty(together, np.int64)
    row = np.empty(together, np.int64)
    for index in range(together):
        row[index] = first if index == multiples else index * _STRIDE
        part_of[index] = index
        place[index] = begins[index] = index * size
    begun = together
    while together:
        index = 0
        while index < together:
            link = links[row[index]]
            written[place[index]] = np.uint8(link)
            place[index] += 1
            row[index] = _next_row(link)
            if link & _ENDS_PART:
                number, after = part_of[index], row[index]
                ends[number] = place[index]
                following[number] = first_part if after == first else after // _STRIDE
                if begun == parts:
                    # The last of the parts gets the number of the one that ended.
                    together -= 1
                    row[index], place[index] = row[together], place[together]
                    part_of[index] = part_of[together]
                    continue
                row[index] = first if begun == multiples else begun * _STRIDE
                begins[begun] = place[index]
                part_of[index] = begun
                begun += 1
            index += 1
    done, number = 0, first_part
    # A text that repeats itself is a shorter chain, which is written several times.
    while done < size:
        length = min(ends[number] - begins[number], size - done)
        begin = begins[number]
        for index in range(length):
            text[done + index] = written[begin + index]
        done += length
        number = following[number]


@compiled
def _expanded_size(text: np.ndarray) -> int:
    """Return the size of a text after its runs are expanded, see `_expand`."""
    size, same, last, index = 0, 0, -1, 0
    while index < len(text):
        same = same + 1 if text[index] == last else 1
        last = text[index]
        index += 1
        size += 1
        if same == 4:
            if index < len(text):
                size += text[index]
            index += 1
            same, last = 0, -1
    return size


@compiled
def _expand(text: np.ndarray, content: np.ndarray) -> None:
    """Expand the runs of a text: the byte after four equal ones is how often they are repeated."""
    size, same, last, index = 0, 0, -1, 0
    while index < len(text):
        same = same + 1 if text[index] == last else 1
        last = text[index]
        index += 1
        content[size] = last
        size += 1
        if same == 4:
            if index < len(text):
                repeated = _signed(text[index])
                _fill(content, size, size + repeated, last)
                size += repeated
            index += 1
            same, last = 0, -1


def _checksum_tables() -> np.ndarray:
    """Return the checksums of each byte that zero to three other bytes follow, uint32 [4, 256]."""
    polynomial = 0x04C11DB7
    tables = np.zeros((4, 256), np.uint32)
    for byte in range(256):
        value = byte << 24
        for follows in range(4):
            for _ in range(8):
                value = value << 1 ^ (polynomial if value >> 31 else 0)
                value &= 0xFFFFFFFF
            tables[follows, byte] = value
    return tables


_CHECKSUMS = _checksum_tables()


@compiled
def _checksum(content: np.ndarray, tables: np.ndarray) -> int:
    """Return bzip2's checksum of the content, a CRC of 32 bits, four bytes at a time.

    The method is that of Kounavis and Berry, "A Systematic Approach to Building High Performance
    Software-Based CRC Generators" (2005).
    """
    value = 0xFFFFFFFF
    whole = len(content) - len(content) % 4
    for index in range(0, whole, 4):
        for offset in range(4):
            value ^= _signed(content[index + offset]) << (24 - 8 * offset)
        value = _signed(
            tables[3, value >> 24]
            ^ tables[2, value >> 16 & 255]
            ^ tables[1, value >> 8 & 255]
            ^ tables[0, value & 255]
        )
    for index in range(whole, len(content)):
        top = value >> 24 ^ _signed(content[index])
        value = (value << 8 & 0xFFFFFFFF) ^ _signed(tables[0, top])
    return value ^ 0xFFFFFFFF
