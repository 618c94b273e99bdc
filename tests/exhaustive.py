"""The mark of a parameter that repeats a slow test with other settings."""

from typing import Any

import pytest


def exhaustive(*values: Any) -> Any:
    """Return a parameter of `pytest.mark.parametrize` that runs with `--exhaustive` only."""
    return pytest.param(*values, marks=pytest.mark.exhaustive)
