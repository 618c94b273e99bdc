"""A run and `predict` read and write no files of a neighbouring folder."""

import csv
import json
import shutil

import pytest

from sample_data import __path__ as sample_data
from tests.e2e.harness import Workspace

pytestmark = pytest.mark.slow

READ = 600


@pytest.mark.exhaustive
@pytest.mark.xdist_group("finished")
def test_a_run_and_predict_in_a_folder_whose_name_matches_a_neighbour(first_run, tmp_path):
    neighbour = tmp_path / "exp1"
    shutil.copytree(first_run[2], neighbour)
    before = contents(neighbour)
    settings = {
        "data": {"input_base": "reviews", "statistics_examples": None},
        "training": {
            # A model with a vocabulary, which Beam writes.
            "model": "text_cnn",
            "epochs": 1,
            "batch_size_per_replica": 64,
            "checkpoint_steps": 1,
            "early_stopping": 1,
        },
        "evaluation": {"min_accuracy": 0.1, "min_class_recall": 0.0},
        "serving_check": {"min_golden": 0.0},
    }
    workspace = Workspace(tmp_path / "exp[1]", settings)
    reviews = workspace.folder / "reviews"
    reviews.mkdir()
    with open(f"{sample_data[0]}/reviews.ft.txt", encoding="utf-8") as sample:
        (reviews / "part.ft.txt").write_text("".join(next(sample) for _ in range(READ)))
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{READ} read: " in done.stdout
    [summary] = workspace.root.glob("Trainer/model_run/*/training.json")
    trained = json.loads(summary.read_text())
    assert 0 < trained["examples"] < READ
    assert contents(neighbour) == before

    output, others = workspace.folder / "out[12].csv", workspace.folder / "out1.csv"
    rejected = [workspace.folder / f"{name}.rejected.jsonl" for name in ("out[12].csv", "out1.csv")]
    for file in (others, *rejected):
        file.write_text("of an earlier command")
    done = workspace.command("predict", "--input", str(reviews), "--output", str(output))
    assert done.returncode == 0, done.stderr
    with output.open() as rows:
        assert len(list(csv.DictReader(rows))) == READ
    assert [file.exists() for file in (others, *rejected)] == [True, False, True]


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
