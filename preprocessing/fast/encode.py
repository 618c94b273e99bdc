"""Serialize tf.Examples of reviews without protobuf objects.

The message of a review has four features of one value each. All its bytes except the values
themselves follow from the lengths of the values. Protobuf's Python classes take ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from preprocessing import features

_VALUES, _BYTES_LIST, _INT64_LIST = b"\x0a", b"\x0a", b"\x1a"
_KEY, _VALUE, _ENTRY, _FEATURES = b"\x0a", b"\x12", b"\x0a", b"\x0a"


def encode_examples(
    labels: Sequence[int],
    texts: Sequence[bytes],
    titles: Sequence[bytes],
    bodies: Sequence[bytes],
) -> list[bytes]:
    """Return serialized Examples with TEXT, TITLE, BODY (bytes) and LABEL (int64).

    Args:
      labels: 0 or 1; all four columns have the same length.
      texts: UTF-8, like titles and bodies.
      titles: empty for a review without a title.
      bodies: the texts without the titles.
    """
    examples = []
    for label, text, title, body in zip(labels, texts, titles, bodies, strict=True):
        text_start = _bytes_start(features.TEXT, len(text))
        title_start = _bytes_start(features.TITLE, len(title))
        body_start = _bytes_start(features.BODY, len(body))
        last = _LABELS[label]
        parts = (text_start, text, title_start, title, body_start, body, last)
        examples.append(_start(sum(map(len, parts))) + b"".join(parts))
    return examples


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@lru_cache(maxsize=1 << 16)
def _bytes_start(name: str, length: int) -> bytes:
    """Return the bytes that precede the value of the feature `name`, which has `length` bytes."""
    values = _VALUES + _varint(length)
    feature = _BYTES_LIST + _varint(len(values) + length) + values
    value = _VALUE + _varint(len(feature) + length) + feature
    key = _KEY + _varint(len(name)) + name.encode()
    return _ENTRY + _varint(len(key) + len(value) + length) + key + value


@lru_cache(maxsize=1 << 16)
def _start(length: int) -> bytes:
    return _FEATURES + _varint(length)


def _int64(name: str, number: int) -> bytes:
    packed = _varint(number)
    values = _VALUES + _varint(len(packed)) + packed
    feature = _INT64_LIST + _varint(len(values)) + values
    key = _KEY + _varint(len(name)) + name.encode()
    entry = key + _VALUE + _varint(len(feature)) + feature
    return _ENTRY + _varint(len(entry)) + entry


_LABELS = tuple(_int64(features.LABEL, label) for label in (0, 1))
