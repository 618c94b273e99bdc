"""Protobuf reads the expected values from the Examples of `encode_examples`."""

import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from preprocessing.fast.encode import encode_examples

TEXT = st.binary(max_size=300) | st.integers(100, 70_000).map(lambda size: b"x" * size)
ROWS = st.lists(st.tuples(TEXT, st.integers(-(2**63), 2**63 - 1)), max_size=5)


@given(ROWS)
def test_examples_contain_the_values(rows):
    columns = {"text": [text for text, _ in rows], "größe": [label for _, label in rows]}
    encoded = encode_examples(columns)
    assert len(encoded) == len(rows)
    for serialized, (text, label) in zip(encoded, rows, strict=True):
        features = tf.train.Example.FromString(serialized).features.feature
        assert set(features) == set(columns)
        assert features["text"].bytes_list.value == [text]
        assert features["größe"].int64_list.value == [label]
