"""The fixtures of all test folders."""

import functools
import logging
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import typer.testing
from absl import logging as absl_logging
from hypothesis import HealthCheck, settings

from core import processes, progress

_ROOT = Path(__file__).parents[1]

# The commands set this too: otherwise TensorFlow imports Keras 3, for a quarter of its time.
os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_USE_LEGACY_KERAS": "1"}

# Typer would build the same commands again for each call in a test, in 14 ms.
typer.testing._get_command = functools.cache(typer.testing._get_command)

# Every run uses the same examples, so that only a change of the code makes a test fail.
# `--hypothesis-profile explore` uses others. An example has no time limit, because its time depends
# on the other processes of the machine.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeat", PATIENT, derandomize=True)
settings.register_profile("explore", PATIENT)
settings.load_profile("repeat")


def pytest_addoption(parser):
    parser.addoption(
        "--exhaustive", action="store_true", help="run the tests that are marked exhaustive too"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Import the test files without garbage collection, which takes nearly half of the time."""
    with processes.large_imports():
        return (yield)


def pytest_collection_modifyitems(config, items):
    """Deselect exhaustive tests without --exhaustive, and tests of a cluster without -m cluster."""
    marks = set() if config.getoption("--exhaustive") else {"exhaustive"}
    if config.option.markexpr != "cluster":
        marks.add("cluster")
    left_out = [item for item in items if any(map(item.get_closest_marker, marks))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_make_parametrize_id(val, argname):
    """Name a test with a long value by the argument, or its name would be the whole value."""
    return argname if isinstance(val, (str, bytes)) and len(val) > 100 else None


def pytest_ignore_collect(collection_path, config):
    """Ignore files with only tests that are deselected: of a cluster, or slow ones.

    The import of TFX and of Google Cloud's clients takes longer than most tests.
    """
    if collection_path == _ROOT / "tests" / "cluster" and config.option.markexpr != "cluster":
        return True
    if "not slow" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    content = collection_path.read_text()
    if "both_stacks" in config.option.markexpr and "mark.both_stacks" in content:
        return None
    all_slow = re.search(r"^pytestmark = (\[[^]]*|.*)\bslow\b", content, re.MULTILINE)
    return bool(all_slow) or None


@pytest.fixture(scope="session")
def real_data():
    """The folder of real reviews, which are not in the repository."""
    folder = os.environ.get("REVIEWS_DATA")
    if not folder:
        pytest.skip("REVIEWS_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def flink_jars():
    """The folder of `make flink`; all tests on Flink run in one process, the group `flink`."""
    folder = _ROOT / ".cache" / "flink"
    for tool in ("java",) if (folder / "installed").exists() else ("java", "mvn"):
        if not shutil.which(tool):
            pytest.skip(f"the tests on Flink need {tool}, which is not installed")
    subprocess.run(["make", "--silent", "-C", str(_ROOT), "flink"], check=True)
    return folder / "lib"


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """A program nvidia-smi that lists six GPUs."""
    program = tmp_path / "programs" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nseq 0 5\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return program


@pytest.fixture
def log(caplog):
    """The captured log, including the level INFO."""
    before = absl_logging.get_verbosity()
    absl_logging.set_verbosity(absl_logging.INFO)
    yield caplog
    absl_logging.set_verbosity(before)


@pytest.fixture
def reported():
    """The events of progress."""
    reports, listener = [], logging.Handler()
    listener.emit = lambda record: reports.append(progress.decode(record))
    progress.LOGGER.addHandler(listener)
    yield reports
    progress.LOGGER.removeHandler(listener)


@pytest.fixture
def counted(reported):
    """A function from a unit to the reported (finished items, total) of all sources at the end."""

    def count(unit):
        here = [event for event in reported if event.unit == unit]
        [total] = {event.total for event in here if event.total is not None}
        return sum({event.source: event.done for event in here}.values()), total

    return count


@pytest.fixture(autouse=True, scope="session")
def _ctrl_c_works():
    """Restore the handler of SIGINT, for this process and its children.

    A shell starts a process in the background with SIGINT ignored.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _sigterm_is_restored():
    """Restore the handler of SIGTERM, which `amazon-reviews run` sets for its whole process."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    # None is a handler that was not installed from Python.
    if before is not None:
        signal.signal(signal.SIGTERM, before)
