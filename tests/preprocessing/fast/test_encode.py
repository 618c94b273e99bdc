"""Protobuf reads the expected values from the Examples of `encode_examples`."""

from __future__ import annotations

import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from preprocessing.fast.encode import encode_examples

TEXT = st.binary(max_size=300) | st.integers(100, 70_000).map(lambda size: b"x" * size)
ROWS = st.lists(st.tuples(st.sampled_from([0, 1]), TEXT, TEXT, TEXT), max_size=5)


@given(ROWS)
def test_examples_contain_the_values(rows: list[tuple[int, bytes, bytes, bytes]]) -> None:
    columns = tuple(zip(*rows, strict=True)) if rows else ((), (), (), ())
    encoded = encode_examples(*columns)
    assert len(encoded) == len(rows)
    for serialized, (label, text, title, body) in zip(encoded, rows, strict=True):
        features = tf.train.Example.FromString(serialized).features.feature
        assert set(features) == {"text", "title", "body", "label"}
        assert features["label"].int64_list.value == [label]
        for name, value in (("text", text), ("title", title), ("body", body)):
            assert features[name].bytes_list.value == [value]
