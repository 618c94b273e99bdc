"""Splits by the hash of the text, and `data.max_examples` by a histogram of the hashes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.line_counts import SPLITS
from components.review_example_gen import splits
from examples.split_fractions import SplitFractions
from preprocessing.reading.records import Batch


@pytest.mark.parametrize(
    ("group", "named", "expected"),
    [
        ("all", [], [0.8, 0.1, 0.1]),
        ("train", ["train", "test"], [0.9, 0.1, 0.0]),
        ("train", ["train", "eval", "test"], [1.0, 0.0, 0.0]),
        ("test", ["train", "test"], [0.0, 0.0, 1.0]),
    ],
)
def test_each_group_of_files_has_its_shares_of_the_splits(group, named, expected):
    keys = splits.text_keys([f"review {i}".encode() for i in range(20_000)])
    found = list(splits.assign_splits(keys, group, splits.Splitting(frozenset(named))))
    shares = [found.count(name) / len(keys) for name in SPLITS]
    assert shares == pytest.approx(expected, abs=0.015)


def test_the_hash_of_earlier_versions_is_unchanged():
    assert splits.text_keys([b"Great phone: loved it"]).tolist() == [0x8EBA84C46CD15921]


def test_the_splits_of_earlier_versions_are_unchanged():
    keys = splits.text_keys([f"review {i}".encode() for i in range(20_000)])
    found = splits.assign_splits(keys, "all", splits.Splitting(frozenset()))
    expected = np.full(len(keys), "train")
    expected[keys % np.uint64(10) == 0] = "eval"
    expected[keys % np.uint64(10) == 1] = "test"
    assert (found == expected).all()


@pytest.mark.parametrize(("held_out", "test"), [(0.02, 0.1), (0.05, 0.3), (0.4, 0.4)])
def test_the_sizes_of_the_splits_are_settings(held_out, test):
    keys = splits.text_keys([f"review {i}".encode() for i in range(20_000)])
    fractions = SplitFractions(eval=held_out, test=test)
    found = splits.assign_splits(keys, "all", splits.Splitting(frozenset(), fractions))
    shares = [np.mean(found == name) for name in SPLITS]
    assert shares == pytest.approx([1 - held_out - test, held_out, test], abs=0.01)


def test_a_smaller_eval_split_leaves_the_test_split_as_it_is():
    keys = splits.text_keys([f"review {i}".encode() for i in range(20_000)])
    usual, small = (
        splits.assign_splits(keys, "all", splits.Splitting(frozenset(), fractions))
        for fractions in (SplitFractions(), SplitFractions(eval=0.02))
    )
    assert ((usual == "test") == (small == "test")).all()
    assert set(usual[small == "eval"].tolist()) == {"eval"}
    assert set(small[(usual == "eval") & (small != "eval")].tolist()) == {"train"}


KEYS = st.sets(st.integers(0, 2**64 - 1))


@given(KEYS, KEYS, st.integers(0, 2**64 - 1))
def test_a_text_of_held_out_files_is_found_in_lower_groups_and_test_has_priority(one, two, other):
    held_out = splits.join_keys([("test", array(one)), ("eval", array(two))])
    keys = array([*one, *two, other])
    unnamed = splits.Splitting(frozenset())
    in_test = ["test" if key in one else "" for key in keys.tolist()]
    in_both = ["test" if key in one else "eval" if key in two else "" for key in keys.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "text_keys", lambda _: keys)
        for order in (held_out, dict(reversed(held_out.items()))):
            for group, expected in (("train", in_both), ("all", in_both), ("eval", in_test)):
                assigned = splits.assign_batch(Batch(), group, unnamed, order)
                assert assigned.duplicate_in.tolist() == expected
            assert not any(splits.assign_batch(Batch(), "test", unnamed, order).duplicate_in)


def is_over(keys, limits):
    return splits.are_over(keys, np.full(len(keys), "train"), limits)


def array(keys):
    return np.array(sorted(keys), np.uint64)


# Some keys are frequent, and some of them are in one range.
REPEATED = st.integers(0, 2**64 - 1) | st.sampled_from([7, 7 + (1 << 40), 7 + (5 << 50)])


@given(st.lists(REPEATED, max_size=100), st.integers(1, 60), st.integers(1, 9))
def test_whole_ranges_are_kept_however_the_input_is_cut(keys, limit, workers):
    keys = np.array(keys, np.uint64)
    parts = np.array_split(keys, workers)
    limits = {"train": splits.find_limit(sum(map(splits.count_ranges, parts)), limit)}
    over = np.concatenate([is_over(part, limits) for part in parts])
    kept, left_out = ([key >> 48 for key in some.tolist()] for some in (keys[~over], keys[over]))
    assert len(kept) <= limit
    if left_out:
        assert max(kept, default=-1) < min(left_out)
        assert len(kept) + left_out.count(min(left_out)) > limit  # the next range does not fit
    assert not is_over(keys, {"eval": 0}).any()


def test_many_reviews_of_one_range_are_counted_exactly(monkeypatch):
    keys = np.full(70_000, 7 << 48, np.uint64)
    split = np.full(len(keys), "train")
    assigned = splits.AssignedBatch(Batch(), keys, split, np.full(len(keys), ""))
    monkeypatch.setattr(splits, "assign_batch", lambda *_: assigned)
    monkeypatch.setattr(splits, "read_in_turns", lambda *_: iter([("all", None, Batch())] * 2))
    [(name, counts)] = splits._count_unit(None, {}, frozenset(), frozenset(["train"]))
    assert (name, counts[7], counts.sum()) == ("train", 140_000, 140_000)
    assert splits.find_limit(counts, 139_999) == 7
    assert splits.find_limit(counts, 140_000) == 1 << 16
