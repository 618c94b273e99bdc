"""The mark of a parameter that repeats a slow test with other settings."""

import pytest


def exhaustive(*values):
    """Return a parameter of `pytest.mark.parametrize` that runs with `--exhaustive` only."""
    return pytest.param(*values, marks=pytest.mark.exhaustive)
