"""Compute the words and the n-gram ids of `preprocessing.normalise` in compiled loops.

The ids equal those of `normalise.ngram_ids(normalise.words(texts), …)` bit for bit. TensorFlow
creates a string for each word. Here a word is a pair of offsets into the bytes of all texts, and
the ids take a seventh of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from preprocessing.fast.compiled import compiled, part
from preprocessing.features import LENGTH_BOUNDARIES
from preprocessing.normalise import (
    CHARACTER_MULTIPLIER,
    HALF,
    MULTIPLIER,
    PUNCTUATION_BYTES,
    WORD_END,
    WORD_HASHES,
    WORD_START,
    opening_mark,
    separate_syllables,
)

_SPACE, _PUNCTUATION, _WORD = 0, 1, 2
_WHOLE = 2**62
"""The length of the last run of words, the whole text; no text has more words."""
DIFFICULT_TEXTS = (
    b"",
    b"It's GREAT!!! (well... 5/5), don't_miss it; 'quoted' & <b>bold</b>",
    "Größe ÉTÉ İstanbul Σίσυφος ΣΑΣ iPhoneの新型 日本語。 \u212a \U0001f600".encode(),
    b"tabs\tand\nlines \x0b\x0c\x1c " + b"antidisestablishmentarianism " * 3 + b"x" * 170,
    b"not UTF-8: \xff\xfe \xc3( a NUL:\0in a word",
    b"See https://www.example.org/a?b=1&c=2, @user #tag e-mail a.b@example.org 1,234.50 10%",
    *(b"the a of and to in is it " * (number // 8) for number in (19, 50, 104, 200, 5000)),
)
"""Texts on which the ids of another graph are compared with those of this module."""


class Words(NamedTuple):
    """The words of a batch of texts.

    Attributes:
      data: the texts in lower case, one after the other, uint8. They are valid UTF-8, which the
        compiled code does not check.
      starts: the offset in `data` at which each word starts, int64 [words].
      ends: the offset at which it ends.
      counts: the number of words of each text, int64 [batch].
    """

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    counts: np.ndarray


class NgramIds(NamedTuple):
    """The ids of the n-grams of a batch, a ragged tensor in the order of `normalise.ngram_ids`.

    Attributes:
      ids: int64 in [0, buckets), shape [n-grams].
      row_lengths: int64, shape [batch].
    """

    ids: np.ndarray
    row_lengths: np.ndarray


class _Rows(NamedTuple):
    """The place for the ids of each text.

    Attributes:
      ids: the ids of all texts, which are written.
      starts: the index in `ids` of the first id of each text, int64 [batch].
      buckets: the number of different ids.
    """

    ids: np.ndarray
    starts: np.ndarray
    buckets: int


def split_words(texts: Sequence[bytes]) -> Words:
    """Return the words of texts, see `normalise.words`.

    Args:
      texts: texts in UTF-8.
    """
    lowered = _prepared_beyond_ascii(texts)
    lengths = np.fromiter(map(len, lowered), np.int64, len(lowered))
    # A space between two texts keeps their words apart.
    data = np.frombuffer(b" ".join(lowered).lower(), np.uint8)
    starts, ends = _borders(data, _edges(data, _KINDS), _KINDS)
    counts = np.diff(np.searchsorted(starts, np.cumsum(lengths + 1)), prepend=0)
    return Words(data, starts, ends, counts)


def length_buckets(words: Words) -> np.ndarray:
    """Return the index in LENGTH_BUCKETS of each text, int64 [batch]."""
    return np.searchsorted(LENGTH_BOUNDARIES, words.counts, side="right")


def ngram_ids(
    words: Words,
    longest: int,
    buckets: int,
    openings: Sequence[int] = (),
    characters: Sequence[int] = (),
) -> NgramIds:
    """Return the hashed ids of all n-grams of 1 to `longest` words, and of n-grams of characters.

    Args:
      words: the words of the texts.
      longest: length of the longest n-gram, in words.
      buckets: number of ids.
      openings: lengths of the openings in words, see `normalise.ngram_ids`.
      characters: lengths of the n-grams of characters, see `normalise.ngram_ids`.
    """
    # The runs of words: the openings, and at last the whole text.
    sizes = np.array([*openings, _WHOLE], np.int64)
    marks = np.array([*map(opening_mark, range(len(openings))), 0], np.int64)
    of_words = _count_word_ngrams(words, longest, sizes)
    row_lengths = of_words
    if characters:
        lengths = np.array(characters, np.int64)
        points, point_ends = _code_points(words, WORD_START, WORD_END)
        row_lengths = of_words + _count_character_ngrams(words, point_ends, lengths)
    row_starts = np.cumsum(row_lengths) - row_lengths
    ids = np.empty(row_lengths.sum(), np.int64)
    rows = _Rows(ids, row_starts, buckets)
    hashes = _hashes(words, WORD_HASHES)
    _write_word_ngrams(hashes, words.counts, longest, sizes, marks, MULTIPLIER, rows)
    if characters:
        rows = _Rows(ids, row_starts + of_words, buckets)
        constants = MULTIPLIER, CHARACTER_MULTIPLIER, HALF
        _write_character_ngrams(points, point_ends, words.counts, lengths, constants, rows)
    return NgramIds(ids, row_lengths)


def _prepared_beyond_ascii(texts: Sequence[bytes]) -> list[bytes]:
    """Return the texts, those with letters beyond ASCII in lower case, by TensorFlow.

    These texts also have spaces around each syllable that is a word. TensorFlow replaces what is
    not UTF-8, so the returned texts are valid UTF-8.
    """
    prepared = list(texts)
    others = [index for index, text in enumerate(texts) if not text.isascii()]
    if others:
        strings = tf.constant([texts[index].replace(b"\0", b" ") for index in others])
        lowered = tf.strings.lower(strings, encoding="utf-8")
        found = separate_syllables(lowered).numpy().tolist()
        for index, text in zip(others, found, strict=True):
            prepared[index] = text
    return prepared


def _count_word_ngrams(words: Words, longest: int, sizes: np.ndarray) -> np.ndarray:
    """Return the number of n-grams of words of each text, int64 [batch]."""
    numbers = np.zeros(len(words.counts), np.int64)
    for size in sizes:
        for shorter in range(longest):
            numbers += np.maximum(np.minimum(words.counts, size) - shorter, 0)
    return numbers


def _count_character_ngrams(
    words: Words, point_ends: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Return the number of n-grams of characters of each text, int64 [batch]."""
    points = np.diff(point_ends, prepend=0)
    by_word = np.zeros(len(points), np.int64)
    for length in lengths:
        by_word += np.maximum(points - (length - 1), 0)
    before = np.append(0, np.cumsum(by_word))
    last = np.cumsum(words.counts)
    return before[last] - before[last - words.counts]


@compiled
def _edges(data: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Return the offsets at which the kind of the bytes changes, and that of the end, int64.

    Args:
      data: the texts, uint8.
      kinds: the kind of each byte, uint8 [256].
    """
    edges = np.empty(len(data) + 1, np.int64)
    found = 0
    before = np.uint8(_SPACE)
    for at in range(len(data)):
        kind = kinds[data[at]]
        # Every offset is written, and the next one replaces it unless it is an edge. A branch would
        # take several times as long, because a processor cannot predict where a word ends.
        edges[found] = at
        found += kind != before
        before = kind
    edges[found] = len(data)
    return edges[: found + 1]


@compiled
def _borders(
    data: np.ndarray, edges: np.ndarray, kinds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets at which words start and end: the runs of bytes that are no spaces.

    An edge between letters and punctuation is both the end of a word and the start of the next one.
    """
    starts = np.empty(len(edges), np.int64)
    ends = np.empty(len(edges), np.int64)
    found = 0
    for edge in range(len(edges) - 1):
        starts[found] = edges[edge]
        ends[found] = edges[edge + 1]
        found += kinds[data[edges[edge]]] != _SPACE
    return starts[:found], ends[:found]


@compiled
def _hashes(words: Words, modulus: int) -> np.ndarray:
    """Return FarmHash's Fingerprint64 of each word modulo a power of two, int64 [words]."""
    hashes = np.empty(len(words.starts), np.int64)
    mask = np.uint64(modulus - 1)
    for word in range(len(hashes)):
        found = _fingerprint(words.data, words.starts[word], words.ends[word])
        hashes[word] = np.int64(found & mask)
    return hashes


@compiled
def _write_word_ngrams(
    hashes: np.ndarray,
    counts: np.ndarray,
    longest: int,
    sizes: np.ndarray,
    marks: np.ndarray,
    multiplier: int,
    rows: _Rows,
) -> None:
    """Write the ids of the n-grams of words.

    Args:
      hashes: the hashes of all words.
      counts: the number of words of each text.
      longest: length of the longest n-gram, in words.
      sizes: the length in words of each opening, and of the whole text.
      marks: the number that is added to the hashes of words in each of them.
      multiplier: `normalise.MULTIPLIER`.
      rows: the place for the ids.
    """
    first = 0
    for text in range(len(counts)):
        written = rows.starts[text]
        for run in range(len(sizes)):
            end = first + min(counts[text], sizes[run])
            for length in range(1, longest + 1):
                for start in range(first, end - length + 1):
                    value = hashes[start] + marks[run]
                    for word in range(start + 1, start + length):
                        value = value * multiplier + (hashes[word] + marks[run])
                    rows.ids[written] = _in_buckets(value, rows.buckets)
                    written += 1
        first += counts[text]


@compiled
def _code_points(words: Words, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the code points of all words, and the offset at which each word ends in them.

    Args:
      words: the words.
      first: the mark before the first character of a word.
      last: the mark after its last character.

    Returns:
      Two arrays of int64.
    """
    points = np.empty(np.sum(words.ends - words.starts) + 2 * len(words.starts), np.int64)
    point_ends = np.empty(len(words.starts), np.int64)
    written = 0
    for word in range(len(words.starts)):
        points[written] = first
        for at in range(words.starts[word], words.ends[word]):
            byte = np.int64(words.data[at])
            if byte >> 6 == 0b10:  # a further byte of a character, with six of its bits
                points[written] = points[written] << 6 | byte & 0b111111
                continue
            written += 1
            if byte < 0x80:
                points[written] = byte
            elif byte < 0xE0:
                points[written] = byte & 0b11111
            elif byte < 0xF0:
                points[written] = byte & 0b1111
            else:
                points[written] = byte & 0b111
        points[written + 1] = last
        written += 2
        point_ends[word] = written
    return points[:written], point_ends


@compiled
def _write_character_ngrams(
    points: np.ndarray,
    point_ends: np.ndarray,
    counts: np.ndarray,
    lengths: np.ndarray,
    constants: tuple[int, int, int],
    rows: _Rows,
) -> None:
    """Write the ids of the n-grams of characters.

    Args:
      points: the code points of all words with their marks.
      point_ends: the offset at which each word ends in `points`.
      counts: the number of words of each text.
      lengths: lengths of the n-grams.
      constants: `MULTIPLIER`, `CHARACTER_MULTIPLIER` and `HALF` of `normalise`.
      rows: the place for the ids.
    """
    multiplier, character_multiplier, half = constants
    word = 0
    for text in range(len(counts)):
        written = rows.starts[text]
        next_text = word + counts[text]
        for length in lengths:
            first = 0 if word == 0 else point_ends[word - 1]
            for each in range(word, next_text):
                for start in range(first, point_ends[each] - length + 1):
                    value = points[start]
                    for at in range(start + 1, start + length):
                        value = value * multiplier + points[at]
                    value *= character_multiplier
                    rows.ids[written] = _in_buckets(value ^ (value >> half), rows.buckets)
                    written += 1
                first = point_ends[each]
        word = next_text


@part
def _in_buckets(value: int, buckets: int) -> int:
    # A remainder takes several times as long as a mask; most numbers of buckets are powers of two.
    if buckets & (buckets - 1):
        return value % buckets
    return value & (buckets - 1)


# FarmHash's Fingerprint64, by which `tf.strings.to_hash_bucket_fast` hashes. The names and the
# formulas are those of its `farmhashna`.

_K0 = np.uint64(0xC3A5C85C97CB3127)
_K1 = np.uint64(0xB492B66FBE98F273)
_K2 = np.uint64(0x9AE16A3B2F90404F)
_SEED = np.uint64(81)


@part
def _fetch(data: np.ndarray, at: int, size: int) -> np.uint64:
    """Return the number in `size` bytes, the lowest byte first."""
    value = np.uint64(0)
    for index in range(size):
        value |= np.uint64(data[at + index]) << np.uint64(8 * index)
    return value


@part
def _rotate(value: np.uint64, bits: int) -> np.uint64:
    return (value >> np.uint64(bits)) | (value << np.uint64(64 - bits))


@part
def _shift_mix(value: np.uint64) -> np.uint64:
    return value ^ (value >> np.uint64(47))


@part
def _hash_16(u: np.uint64, v: np.uint64, multiplier: np.uint64) -> np.uint64:
    a = _shift_mix((u ^ v) * multiplier)
    return _shift_mix((v ^ a) * multiplier) * multiplier


@part
def _weak_hash_32(
    data: np.ndarray, at: int, a: np.uint64, b: np.uint64
) -> tuple[np.uint64, np.uint64]:
    w, x = _fetch(data, at, 8), _fetch(data, at + 8, 8)
    y, z = _fetch(data, at + 16, 8), _fetch(data, at + 24, 8)
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return a + z, b + c


@part
def _fingerprint(data: np.ndarray, start: int, end: int) -> np.uint64:
    """Return the Fingerprint64 of `data[start:end]`, at least one byte."""
    size = end - start
    if size > 64:
        return _long_fingerprint(data, start, end)
    length = np.uint64(size)
    multiplier = _K2 + length * np.uint64(2)
    if size <= 3:
        y = np.uint64(data[start]) + (np.uint64(data[start + (size >> 1)]) << np.uint64(8))
        z = length + (np.uint64(data[end - 1]) << np.uint64(2))
        return _shift_mix((y * _K2) ^ (z * _K0)) * _K2
    if size <= 7:
        u = length + (_fetch(data, start, 4) << np.uint64(3))
        return _hash_16(u, _fetch(data, end - 4, 4), multiplier)
    if size <= 16:
        a, b = _fetch(data, start, 8) + _K2, _fetch(data, end - 8, 8)
        c = _rotate(b, 37) * multiplier + a
        return _hash_16(c, (_rotate(a, 25) + b) * multiplier, multiplier)
    a = _fetch(data, start, 8) * (_K1 if size <= 32 else _K2)
    b = _fetch(data, start + 8, 8)
    c = _fetch(data, end - 8, 8) * multiplier
    d = _fetch(data, end - 16, 8) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _hash_16(y, a + _rotate(b + _K2, 18) + c, multiplier)
    if size <= 32:
        return z
    e, f = _fetch(data, start + 16, 8) * multiplier, _fetch(data, start + 24, 8)
    g = (y + _fetch(data, end - 32, 8)) * multiplier
    h = (z + _fetch(data, end - 24, 8)) * multiplier
    u = _rotate(e + f, 43) + _rotate(g, 30) + h
    return _hash_16(u, e + _rotate(f + a, 18) + g, multiplier)


@part
def _long_fingerprint(data: np.ndarray, start: int, end: int) -> np.uint64:
    """Return the Fingerprint64 of more than 64 bytes."""
    rest = (end - start - 1) % 64
    y = _SEED * _K1 + np.uint64(113)
    z = _shift_mix(y * _K2 + np.uint64(113)) * _K2
    v0 = v1 = w0 = w1 = np.uint64(0)
    x = _SEED * _K2 + _fetch(data, start, 8)
    for at in range(start, end - 1 - rest, 64):
        x = _rotate(x + y + v0 + _fetch(data, at + 8, 8), 37) * _K1
        y = _rotate(y + v1 + _fetch(data, at + 48, 8), 42) * _K1
        x ^= w1
        y += v0 + _fetch(data, at + 40, 8)
        z = _rotate(z + w0, 33) * _K1
        v0, v1 = _weak_hash_32(data, at, v1 * _K1, x + w0)
        w0, w1 = _weak_hash_32(data, at + 32, z + w1, y + _fetch(data, at + 16, 8))
        z, x = x, z
    multiplier = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    at = end - 64
    w0 += np.uint64(rest)
    v0 += w0
    w0 += v0
    x = _rotate(x + y + v0 + _fetch(data, at + 8, 8), 37) * multiplier
    y = _rotate(y + v1 + _fetch(data, at + 48, 8), 42) * multiplier
    x ^= w1 * np.uint64(9)
    y += v0 * np.uint64(9) + _fetch(data, at + 40, 8)
    z = _rotate(z + w0, 33) * multiplier
    v0, v1 = _weak_hash_32(data, at, v1 * multiplier, x + w0)
    w0, w1 = _weak_hash_32(data, at + 32, z + w1, y + _fetch(data, at + 16, 8))
    z, x = x, z
    u = _hash_16(v0, w0, multiplier) + _shift_mix(y) * _K0 + z
    return _hash_16(u, _hash_16(v1, w1, multiplier) + x, multiplier)


def _kinds() -> np.ndarray:
    kinds = np.full(256, _WORD, np.uint8)
    kinds[list(b" \t\n\v\f\r\0")] = _SPACE
    kinds[list(PUNCTUATION_BYTES)] = _PUNCTUATION
    return kinds


_KINDS = _kinds()
