"""The benchmark of the memory for classes: jobs that bring Beam's jars leave classes behind."""

import json
import subprocess
import sys

import pytest

from benchmarks.metaspace import CLUSTERS, table
from benchmarks.usage import REPOSITORY


def test_a_row_for_each_job_and_one_for_the_garbage_collection():
    figures = {
        "class path": [{"JobManager": 2**20, "TaskManager": number * 2**20} for number in (2, 3)],
        "each job": [{"JobManager": 2**19, "TaskManager": number * 2**20} for number in (4, 5)],
    }
    rows = list(zip(*[list(column.cells) for column in table(figures, 1).columns], strict=True))
    assert rows == [
        ("job 1", "1.0", "2.0", "0.5", "4.0"),
        ("garbage collection", "1.0", "3.0", "0.5", "5.0"),
    ]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("flink")
def test_only_jobs_that_bring_the_jars_of_beam_add_their_classes(flink_jars, tmp_path):
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.metaspace", "--jobs", "3", "--json", str(file)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(file.read_text())
    grown = {
        cluster: figures[cluster][2]["TaskManager"] - figures[cluster][1]["TaskManager"]
        for cluster in CLUSTERS
    }
    assert grown["each job"] > 10 * grown["class path"]
