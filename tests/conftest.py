"""What every test folder shares."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data():
    """The folder of real reviews, which the repository does not have."""
    folder = os.environ.get("REVIEWS_DATA")
    if not folder:
        pytest.skip("REVIEWS_DATA is not set")
    return Path(folder)
