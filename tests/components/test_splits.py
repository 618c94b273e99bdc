"""Splits: by hash of the text, stable, disjoint."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.review_example_gen import splits

NOTHING_NAMED = frozenset()


def shares(group, named):
    keys = [splits.text_key(f"review {i}".encode()) for i in range(20_000)]
    counts = {name: 0 for name in splits.SPLITS}
    for key in keys:
        counts[splits.assign_split(key, group, named)] += 1
    return [round(counts[name] / len(keys), 2) for name in splits.SPLITS]


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


def test_the_hash_is_the_one_that_earlier_data_were_split_with():
    assert splits.text_key(b"Great phone: loved it") == 0x8EBA84C46CD15921
    assert splits.rank_key(0, "a.csv", 1) == 0xCCCFEA6D


@given(st.binary(), st.text(), st.integers(1, 10**9))
def test_ranks_order_by_text_before_place(text, name, position):
    key = splits.text_key(text)
    assert splits.rank_key(key, name, position) >> 32 == key >> 32


@given(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=200), st.integers(1, 50))
def test_a_cap_keeps_exactly_that_many(ranks, limit):
    pieces = [np.array(ranks[i::3], np.uint64) for i in range(3)]
    selection = splits.Selection(last_rank=splits.last_ranks({"train": pieces}, {"train": limit}))
    kept = [rank for rank in ranks if not selection.is_over_the_cap("train", rank)]
    assert sorted(kept) == sorted(ranks)[:limit]


@given(st.sets(st.integers(0, 2**64 - 1)), st.integers(0, 2**64 - 1))
def test_held_out_texts_are_found_from_lower_groups_only(keys, other):
    held_out = splits.held_out_keys({"test": [np.array(sorted(keys), np.uint64)]})
    selection = splits.Selection(held_out=held_out)
    for key in [*keys, other]:
        expected = "test" if key in keys else None
        assert selection.stands_elsewhere(key, "train") == expected
        assert selection.stands_elsewhere(key, "eval") == expected
        assert selection.stands_elsewhere(key, "test") is None
