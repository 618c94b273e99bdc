"""The table of the input pipeline: what is divided by what, and that all three can be run."""

import subprocess
import sys
from pathlib import Path

import pytest

import sample_data
from benchmarks import usage
from benchmarks.input_pipeline import table

SAMPLE = Path(sample_data.__file__).parent / "reviews.ft.txt"


def test_everything_is_compared_with_training():
    alone = {"examples": 1000, "seconds": 0.5, "cpu_seconds": 1.0}
    drawn = table({"input alone": alone, "training": {"examples": 1000, "seconds": 2.0}})
    names, _, rates, cpu, ratios = [list(column.cells) for column in drawn.columns]
    assert names == ["input alone", "training"]
    assert rates == ["2,000", "500"]
    assert cpu == ["100.00", ""]
    assert ratios == ["4.00", "1.00"]


@pytest.mark.slow
def test_the_sample_is_timed(tmp_path):
    command = [sys.executable, "-m", "benchmarks.input_pipeline", str(SAMPLE)]
    options = ["--passes", "2", "--scratch", str(tmp_path)]
    settings = ["--set", "training.batch_size_per_replica=32"]
    done = subprocess.run(
        [*command, *options, *settings], cwd=usage.REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for name in ("input alone", "model alone", "training"):
        [row] = [line for line in done.stdout.splitlines() if line.startswith(f"│ {name} ")]
        assert all(cell.strip() for cell in row.split("│")[2:4])
