"""Numbers with 8 bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from trainer_module.models.shared import levels

FINITE = st.floats(-1e6, 1e6, width=32)


@given(arrays.arrays(np.float32, st.integers(1, 300), elements=FINITE))
def test_each_value_gets_its_nearest_level(values):
    fitted = levels.fit(values)
    assert fitted.shape == (256,) and fitted.dtype == np.float32
    found = fitted[levels.nearest(values, fitted)]
    nearest = np.abs(values[:, None] - fitted).min(axis=1)
    np.testing.assert_allclose(np.abs(values - found), nearest, rtol=1e-3, atol=1e-3)


def test_few_different_values_are_exact():
    values = np.repeat(np.float32([-3.5, 0, 0.001, 2]), 1000)
    fitted = levels.fit(values)
    assert fitted[levels.nearest(values, fitted)] == pytest.approx(values, abs=1e-6)


def test_the_error_of_weights_is_a_hundredth_of_their_spread():
    values = np.random.default_rng(1).laplace(size=100_000)
    fitted = levels.fit(values)
    error = values - fitted[levels.nearest(values, fitted)]
    assert error.std() < 0.02 * values.std()
