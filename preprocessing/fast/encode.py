"""Serialize tf.Examples of reviews without protobuf objects.

All bytes of the message except the values follow from the lengths of the values. Protobuf's Python
classes take ten times as long. `RecordBatchToExamplesEncoder` of tfx_bsl 1.16 takes 1.7 times as
long, including the conversion to Arrow (2.1 µs a review instead of 1.3 µs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

_VALUES, _BYTES_LIST, _INT64_LIST = b"\x0a", b"\x0a", b"\x1a"
_KEY, _VALUE, _ENTRY, _FEATURES = b"\x0a", b"\x12", b"\x0a", b"\x0a"


def encode_examples(columns: Mapping[str, Sequence[Any]]) -> list[bytes]:
    """Return serialized Examples with one value in each feature.

    Args:
      columns: name of a feature -> its values, which are all bytes or all int64. All features have
        the same number of values.

    Raises:
      ValueError: the features have different numbers of values.
    """
    entries = [
        [_bytes_start(name, len(value)) + value for value in values]
        if values and isinstance(values[0], bytes)
        else [_int64(name, value) for value in values]
        for name, values in columns.items()
    ]
    rows = map(b"".join, zip(*entries, strict=True))
    return [_start(len(row)) + row for row in rows]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _key(name: str) -> bytes:
    encoded = name.encode()
    return _KEY + _varint(len(encoded)) + encoded


@lru_cache(maxsize=1 << 16)
def _bytes_start(name: str, length: int) -> bytes:
    """Return the bytes that precede the value of the feature `name`, which has `length` bytes."""
    values = _VALUES + _varint(length)
    feature = _BYTES_LIST + _varint(len(values) + length) + values
    value = _VALUE + _varint(len(feature) + length) + feature
    key = _key(name)
    return _ENTRY + _varint(len(key) + len(value) + length) + key + value


@lru_cache(maxsize=1 << 16)
def _start(length: int) -> bytes:
    return _FEATURES + _varint(length)


@lru_cache(maxsize=1 << 16)
def _int64(name: str, number: int) -> bytes:
    packed = _varint(number & 0xFFFFFFFFFFFFFFFF)
    values = _VALUES + _varint(len(packed)) + packed
    feature = _INT64_LIST + _varint(len(values)) + values
    entry = _key(name) + _VALUE + _varint(len(feature)) + feature
    return _ENTRY + _varint(len(entry)) + entry
