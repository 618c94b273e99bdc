"""`data.max_examples`: which reviews are kept, and how many of them one worker ranks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.review_example_gen import ranks, splits
from components.review_example_gen.cap import Cap
from preprocessing.reading.columns import Layout
from preprocessing.reading.cut import Piece

PATH = "in/a.csv"


def select(runs, pieces, before, limit):
    """Return the limits, and the number of ranks that reach the last step.

    Args:
      runs: arrays of PLACE.
      pieces: (path, number) of each source.
    """
    edge = ranks.find_edge(ranks.sum_counts(map(ranks.count_buckets, runs)), limit)
    ranked = [ranks.at_edge(run, edge, pieces, before) for run in runs] if edge else []
    found = ranks.last_kept([("train", some) for some in ranked], {"train": edge})
    return Cap(found, before), sum(map(len, ranked))


def test_ranks_of_earlier_versions_are_unchanged():
    assert ranks.rank(0, "in/a.csv", 1) == 0xCCCFEA6D


@given(st.binary(), st.text(), st.integers(1, 10**9))
def test_ranks_order_by_text_before_place(text, name, position):
    key = splits.text_key(text)
    assert ranks.rank(key, name, position) >> 32 == key >> 32


# Two keys are frequent, because the place of a review matters only for equal texts. Another one is
# in the same bucket as they are.
KEYS = st.integers(0, 2**64 - 1) | st.sampled_from([7, 7 + (5 << 32), 7 + (6 << 32)])


@given(st.lists(KEYS, max_size=100), st.integers(1, 50), st.integers(1, 7), st.integers(1, 4))
def test_a_cap_keeps_exactly_the_lowest_ranks_however_a_file_is_cut(keys, limit, lines, per_run):
    expected = [ranks.rank(key, "a.csv", place) for place, key in enumerate(keys, 1)]
    parts = [keys[start : start + lines] for start in range(0, len(keys), lines)]
    pieces = [(PATH, number) for number in range(len(parts))]
    before = {piece: number * lines for number, piece in enumerate(pieces)}
    positions = np.arange(1, lines + 1)
    places = [
        ranks.places_of(array(part), number, positions[: len(part)])
        for number, part in enumerate(parts)
    ]
    runs = [
        np.concatenate(places[start : start + per_run]) for start in range(0, len(places), per_run)
    ]
    found, _ = select(runs, pieces, before, limit)
    kept = []
    for number, part in enumerate(parts):
        split = np.full(len(part), "train")
        over = found.is_over(split, array(part), positions.tolist(), piece_of(number))
        kept += [not left_out for left_out in over]
    assert (
        sorted(rank for rank, is_kept in zip(expected, kept, strict=True) if is_kept)
        == sorted(expected)[:limit]
    )
    assert not found.is_over(np.array(["eval"]), array([2**64 - 1]), [1], piece_of(0)).any()


@pytest.mark.parametrize("limit", [1, 70_000, 199_999])
def test_one_worker_ranks_only_the_reviews_near_the_limit(limit):
    keys = np.random.default_rng(limit).integers(0, 2**64, 200_000, np.uint64)
    runs = [
        ranks.places_of(part, number, np.arange(len(part)))
        for number, part in enumerate(np.split(keys, 10))
    ]
    pieces = [(PATH, number) for number in range(10)]
    before = dict(zip(pieces, range(0, 200_000, 20_000), strict=True))
    found, ranked = select(runs, pieces, before, limit)
    assert np.count_nonzero(keys >> np.uint64(32) <= found.last_rank["train"] >> 32) == limit
    # Each of 4,096 buckets has 49 reviews.
    assert ranked < 100


def array(keys):
    return np.array(keys, np.uint64)


def piece_of(number):
    return Piece(PATH, Layout("csv"), number, 0, None, False, 0)
