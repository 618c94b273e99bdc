"""Splits: by hash of the text, stable, disjoint."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.review_example_gen import splits
from preprocessing.reading.records import Batch


def shares(group, named):
    keys = splits.text_keys([f"review {i}".encode() for i in range(20_000)])
    found = list(splits.assign_splits(keys, group, named))
    return [round(found.count(name) / len(keys), 2) for name in splits.SPLITS]


@pytest.mark.parametrize(
    ("group", "named", "expected"),
    [
        ("all", [], [0.8, 0.1, 0.1]),
        ("train", ["train"], [0.8, 0.1, 0.1]),
        ("train", ["train", "test"], [0.9, 0.1, 0.0]),
        ("train", ["train", "eval"], [0.9, 0.0, 0.1]),
        ("train", ["train", "eval", "test"], [1.0, 0.0, 0.0]),
        ("test", ["train", "test"], [0.0, 0.0, 1.0]),
        ("eval", ["train", "eval"], [0.0, 1.0, 0.0]),
    ],
)
def test_shares(group, named, expected):
    assert shares(group, frozenset(named)) == pytest.approx(expected, abs=0.011)


def test_the_hash_of_earlier_versions_is_unchanged():
    assert splits.text_keys([b"Great phone: loved it"]).tolist() == [0x8EBA84C46CD15921]


KEYS = st.sets(st.integers(0, 2**64 - 1))


@given(KEYS, KEYS, st.integers(0, 2**64 - 1))
def test_a_text_of_held_out_files_is_found_in_lower_groups_and_test_has_priority(one, two, other):
    held_out = splits.held_out_keys([("test", array(one)), ("eval", array(two))])
    keys = array([*one, *two, other])
    in_test = ["test" if key in one else "" for key in keys.tolist()]
    in_both = ["test" if key in one else "eval" if key in two else "" for key in keys.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "text_keys", lambda _: keys)
        for order in (held_out, dict(reversed(held_out.items()))):
            for group, expected in (("train", in_both), ("all", in_both), ("eval", in_test)):
                assigned = splits.assign_batch(Batch(), group, frozenset(), order)
                assert assigned.duplicate_in.tolist() == expected
            assert not any(splits.assign_batch(Batch(), "test", frozenset(), order).duplicate_in)


def array(keys):
    return np.array(sorted(keys), np.uint64)
