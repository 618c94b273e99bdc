"""`data.max_examples`: which reviews are kept, by a histogram of their text keys."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.review_example_gen.example_limit import count_ranges, find_limit, is_over

# Some keys are frequent, and some of them are in one range.
KEYS = st.integers(0, 2**64 - 1) | st.sampled_from([7, 7 + (1 << 40), 7 + (5 << 50)])


@given(st.lists(KEYS, max_size=100), st.integers(1, 60), st.integers(1, 9))
def test_whole_ranges_are_kept_however_the_input_is_cut(keys, limit, workers):
    keys = np.array(keys, np.uint64)
    parts = np.array_split(keys, workers)
    limits = {"train": find_limit(sum(map(count_ranges, parts)), limit)}
    over = np.concatenate([is_over(np.full(len(part), "train"), part, limits) for part in parts])
    kept, left_out = ([key >> 48 for key in some.tolist()] for some in (keys[~over], keys[over]))
    assert len(kept) <= limit
    if left_out:
        assert max(kept, default=-1) < min(left_out)
        assert len(kept) + left_out.count(min(left_out)) > limit  # the next range does not fit
    assert not is_over(np.full(len(keys), "eval"), keys, limits).any()


@pytest.mark.parametrize(("reviews", "limit"), [(500, 100), (32_000, 1000), (2_000_000, 100_000)])
def test_few_reviews_fewer_than_the_limit_are_kept(reviews, limit):
    keys = np.random.default_rng(limit).integers(0, 2**64, reviews, np.uint64)
    over = is_over(
        np.full(reviews, "train"), keys, {"train": find_limit(count_ranges(keys), limit)}
    )
    assert 0 <= limit - np.count_nonzero(~over) <= 2 * reviews / 2**16 + 1
