"""A run and `predict` read and write no files of a neighbouring folder."""

import csv

import pytest

from sample_data import __path__ as sample_data
from tests.e2e.harness import Workspace

pytestmark = pytest.mark.slow

READ = 600


def test_a_folder_whose_name_libraries_match_as_a_pattern_is_refused(tmp_path):
    refused = Workspace(tmp_path / "exp[1]", {}).run()
    assert refused.returncode == 2
    assert "root: " in refused.stderr and "libraries match as a pattern" in refused.stderr


@pytest.mark.exhaustive
@pytest.mark.xdist_group("finished")
def test_predict_writes_a_file_whose_name_matches_a_neighbour(first_run, tmp_path):
    workspace = first_run[0]
    reviews = tmp_path / "reviews[1].ft.txt"
    with open(f"{sample_data[0]}/reviews.ft.txt", encoding="utf-8") as sample:
        reviews.write_text("".join(next(sample) for _ in range(READ)))
    output, others = tmp_path / "out[12].csv", tmp_path / "out1.csv"
    rejected = [tmp_path / f"{name}.rejected.jsonl" for name in ("out[12].csv", "out1.csv")]
    for file in (others, *rejected):
        file.write_text("of an earlier command")
    done = workspace.command("predict", "--input", str(reviews), "--output", str(output))
    assert done.returncode == 0, done.stderr
    with output.open() as rows:
        assert len(list(csv.DictReader(rows))) == READ
    assert [file.exists() for file in (others, *rejected)] == [True, False, True]
