"""Splits: by hash of the text, stable, disjoint."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.review_example_gen import splits
from preprocessing.reading.batch import Batch
from preprocessing.reading.columns import Layout
from preprocessing.reading.cut import Piece

NOTHING_NAMED = frozenset()


def shares(group, named):
    keys = [splits.text_key(f"review {i}".encode()) for i in range(20_000)]
    found = list(splits.assign_splits(np.array(keys, np.uint64), group, named))
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
    assert splits.text_key(b"Great phone: loved it") == 0x8EBA84C46CD15921
    assert splits.text_keys([b"Great phone: loved it"]).tolist() == [0x8EBA84C46CD15921]
    assert splits.rank_key(0, "a.csv", 1) == 0xCCCFEA6D


@given(st.binary(), st.text(), st.integers(1, 10**9))
def test_ranks_order_by_text_before_place(text, name, position):
    key = splits.text_key(text)
    assert splits.rank_key(key, name, position) >> 32 == key >> 32


# Two keys are frequent, because the place of a review matters only for equal texts.
KEYS = st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([7, 7 + (5 << 32)]), max_size=100)


@given(KEYS, st.integers(1, 50), st.integers(1, 7))
def test_a_cap_keeps_exactly_the_lowest_ranks_however_a_file_is_cut(keys, limit, lines):
    ranks = [splits.rank_key(key, "a.csv", place) for place, key in enumerate(keys, 1)]
    pieces, found = [], []
    for index, start in enumerate(range(0, len(keys), lines)):
        part = keys[start : start + lines]
        local = list(range(1, len(part) + 1))
        pieces.append(("in/a.csv", index, len(part)))
        found.append(splits.Places("in/a.csv", index, array(part), np.array(local, np.int64)))
    cap = splits.find_cap([("train", places) for places in found], pieces[::-1], {"train": limit})
    kept = []
    for places in found:
        piece = Piece(places.path, Layout("csv"), places.number, 0, None, False, 0)
        split = np.full(len(places.keys), "train")
        over = cap.is_over(split, places.keys, places.positions.tolist(), piece)
        kept += [not left_out for left_out in over]
    assert (
        sorted(rank for rank, is_kept in zip(ranks, kept, strict=True) if is_kept)
        == sorted(ranks)[:limit]
    )
    assert not cap.is_over(np.array(["eval"]), array([2**64 - 1]), [1], piece_of()).any()


@given(st.sets(st.integers(0, 2**64 - 1)), st.integers(0, 2**64 - 1))
def test_held_out_texts_are_found_from_lower_groups_only(keys, other):
    held_out = splits.held_out_keys([("test", array(sorted(keys)))])
    looked_up = array([*keys, other])
    expected = ["test" if key in keys else "" for key in looked_up.tolist()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "text_keys", lambda _: looked_up)
        for group in ("train", "eval"):
            routed = splits.route(Batch(), group, frozenset(), held_out)
            assert routed.duplicate_in.tolist() == expected
        assert not any(splits.route(Batch(), "test", frozenset(), held_out).duplicate_in)


@given(st.sets(st.integers(0, 2**64 - 1), min_size=1))
def test_texts_of_eval_files_are_found_in_train_files_only(keys):
    looked_up = array(sorted(keys))
    held_out = splits.held_out_keys([("eval", looked_up)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splits, "text_keys", lambda _: looked_up)
        for group in ("train", "all"):
            routed = splits.route(Batch(), group, frozenset(), held_out)
            assert set(routed.duplicate_in.tolist()) == {"eval"}
        for group in ("eval", "test"):
            assert not any(splits.route(Batch(), group, frozenset(), held_out).duplicate_in)


def array(keys):
    return np.array(keys, np.uint64)


def piece_of():
    return Piece("in/a.csv", Layout("csv"), 0, 0, None, False, 0)
