"""Small arrays are joined to arrays of a bounded size."""

from collections import defaultdict
from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from components.review_example_gen.chunks import in_chunks

PARTS = st.lists(st.tuples(st.sampled_from("ab"), st.lists(st.integers(0, 99), max_size=5)))


@given(PARTS, st.integers(1, 12))
def test_chunks_have_all_values_in_their_order_and_a_bounded_size(parts, size):
    found, expected = defaultdict(list), defaultdict(list)
    for name, values in parts:
        expected[name] += values
    for name, chunk in in_chunks(((name, np.array(v, int)) for name, v in parts), size):
        found[name].append(chunk.tolist())
    assert {name: [*chain(*chunks)] for name, chunks in found.items()} == {
        name: values for name, values in expected.items() if values
    }
    for *full, last in found.values():
        assert all(size <= len(chunk) < size + 5 for chunk in full)
        assert 0 < len(last) < size + 5


def test_a_full_chunk_is_yielded_before_the_next_array_is_read():
    def parts():
        yield "a", np.arange(3)
        raise AssertionError

    assert next(in_chunks(parts(), 3))[1].tolist() == [0, 1, 2]
