"""What every test folder shares."""

import os
import re
import signal
from pathlib import Path

import pytest
from absl import logging as absl_logging
from hypothesis import HealthCheck, settings

# The same examples in every run, so that a change is what makes a test fail; other ones with
# `--hypothesis-profile explore`. No example is too slow: that depends on what else runs.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeat", PATIENT, derandomize=True)
settings.register_profile("explore", PATIENT)
settings.load_profile("repeat")


def pytest_ignore_collect(collection_path, config):
    """A file that is slow as a whole is not even imported where slow tests are left out: TFX and
    the clients of Google Cloud take longer than most tests."""
    if "not slow" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    all_slow = re.search(r"^pytestmark = .*\bslow\b", collection_path.read_text(), re.MULTILINE)
    return bool(all_slow) or None


@pytest.fixture(scope="session")
def real_data():
    """The folder of real reviews, which the repository does not have."""
    folder = os.environ.get("REVIEWS_DATA")
    if not folder:
        pytest.skip("REVIEWS_DATA is not set")
    return Path(folder)


@pytest.fixture
def log(caplog):
    """What is logged, lines of INFO too."""
    before = absl_logging.get_verbosity()
    absl_logging.set_verbosity(absl_logging.INFO)
    yield caplog
    absl_logging.set_verbosity(before)


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_works():
    """Also in a suite that a shell runs in the background: it would ignore SIGINT, and so would
    every process that a test starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
