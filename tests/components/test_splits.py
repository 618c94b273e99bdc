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


@given(st.sets(st.integers(0, 2**64 - 1)), st.integers(0, 2**64 - 1))
def test_held_out_texts_are_found_from_lower_groups_only(keys, other):
    held_out = splits.held_out_keys([("test", array(sorted(keys)))])
    looked_up = array([*keys, other])
    expected = ["test" if key in keys else "" for key in looked_up.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "text_keys", lambda _: looked_up)
        for group in ("train", "eval"):
            assigned = splits.assign_batch(Batch(), group, frozenset(), held_out)
            assert assigned.duplicate_in.tolist() == expected
        assert not any(splits.assign_batch(Batch(), "test", frozenset(), held_out).duplicate_in)


@given(st.sets(st.integers(0, 2**64 - 1), min_size=1))
def test_texts_of_eval_files_are_found_in_train_files_only(keys):
    looked_up = array(sorted(keys))
    held_out = splits.held_out_keys([("eval", looked_up)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "text_keys", lambda _: looked_up)
        for group in ("train", "all"):
            assigned = splits.assign_batch(Batch(), group, frozenset(), held_out)
            assert set(assigned.duplicate_in.tolist()) == {"eval"}
        for group in ("eval", "test"):
            assert not any(splits.assign_batch(Batch(), group, frozenset(), held_out).duplicate_in)


def test_a_text_in_eval_and_test_files_belongs_to_test():
    held_out = splits.held_out_keys([("test", array([7])), ("eval", array([7, 8]))])
    for order in (held_out, dict(reversed(held_out.items()))):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(splits, "text_keys", lambda _: array([7, 8, 9]))
            assigned = splits.assign_batch(Batch(), "train", frozenset(), order)
        assert assigned.duplicate_in.tolist() == ["test", "eval", ""]


def array(keys):
    return np.array(keys, np.uint64)
