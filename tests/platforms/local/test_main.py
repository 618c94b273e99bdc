"""The process of a local run, if ML Metadata cannot be written."""

import subprocess
import sys
from pathlib import Path

import pytest

import amazon_reviews_start
from core.metadata import open_store
from tests.core.test_metadata import FULL, fail

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("table", ["Execution", "ContextProperty"])
def test_metadata_that_cannot_be_written_is_one_line(tmp_path, table):
    """With ContextProperty neither the run nor its failure can be recorded."""
    root = tmp_path / "runs"
    root.mkdir()
    file = str(root / "metadata.sqlite")
    open_store(file)
    fail(file, table)
    start = [sys.executable, str(Path(amazon_reviews_start.__file__)), "0", "platforms.local.main"]
    settings = ["--set", f"paths.root={root},data.max_examples=300"]
    done = subprocess.run([*start, *settings], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if "paths.metadata" in line]
    assert line.startswith(
        f"ReviewExampleGen: paths.metadata: {file} cannot be used: {FULL}. Check its disk"
    )
