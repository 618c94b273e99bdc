"""Compiled functions work whatever happens to the files of their machine code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = """
from preprocessing.fast.compiled import compiled

@compiled
def multiply(value):
    return {factor} * value
"""
CALL = """
import os
import multiplied
{before}
print(multiplied.multiply(21), len(multiplied.multiply.signatures))
"""


@pytest.fixture
def call(tmp_path):
    """Return a function that calls the compiled function in a new process."""
    module = tmp_path / "multiplied.py"
    module.write_text(SOURCE.format(factor=2))

    def function(before="", **variables):
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", **variables}
        words = [sys.executable, "-c", CALL.format(before=before)]
        done = subprocess.run(
            words, env=environment, cwd="/", capture_output=True, text=True, check=False
        )
        return done.stdout.strip(), done.stderr

    return function


def files(folder, suffix):
    return sorted((folder / "__pycache__").glob(f"multiplied.*{suffix}"))


def test_a_function_is_compiled_once(call, tmp_path):
    assert call() == ("42 1", "")
    [stored] = files(tmp_path, ".nbc")
    before = stored.stat()
    assert call() == ("42 1", "")
    assert files(tmp_path, ".nbc") == [stored]
    assert stored.stat().st_mtime_ns == before.st_mtime_ns


def test_a_function_is_compiled_if_no_folder_can_be_written(call, tmp_path):
    (tmp_path / "__pycache__").touch()
    assert call(HOME="/proc/none", XDG_CACHE_HOME="/proc/none")[0] == "42 1"


def test_a_folder_that_can_no_longer_be_written_is_a_warning(call, tmp_path):
    before = "import shutil; shutil.rmtree({0!r}, True); open({0!r}, 'w').close()"
    found, log = call(before.format(f"{tmp_path}/__pycache__"))
    assert found == "42 1"
    assert "Compiled code cannot be stored in" in log


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_a_damaged_file_is_written_again(call, tmp_path, suffix):
    call()
    [damaged] = files(tmp_path, suffix)
    damaged.write_bytes(b"")
    found, log = call()
    assert found == "42 1"
    assert f"The compiled code in {tmp_path}" in log
    assert call() == ("42 1", "")


def test_a_changed_source_has_files_of_its_own(call, tmp_path):
    """So an index of the new source never names machine code of the old one."""
    call()
    old = set(files(tmp_path, ".nbc"))
    # Python compares only the seconds and the size of a source with those in its bytecode.
    (tmp_path / "multiplied.py").write_text(SOURCE.format(factor=10))
    assert call() == ("210 1", "")
    assert len(set(files(tmp_path, ".nbc")) - old) == 1
