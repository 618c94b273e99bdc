"""Real reviews: the promised accuracy, and files of two formats in one folder."""

import csv
import gzip

import pytest

from tests.e2e.harness import Workspace

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive, pytest.mark.real_data]


def test_real_reviews_reach_the_promised_accuracy(tmp_path, real_data):
    data = {
        "input_base": str(real_data / "lara"),
        "splits": {"train": "train.ft.txt.bz2", "test": "test.ft.txt.bz2"},
    }
    workspace = Workspace(tmp_path, {"data": data, "evaluation": {"min_accuracy": 0.945}})
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(workspace.pushed()) == 1, "accuracy is below 0.945"


def test_json_lines_and_csv_are_read_to_the_last_line(tmp_path, real_data):
    beauty, baby = real_data / "All_Beauty_5.json.gz", real_data / "amazon_baby_subset.csv"
    inputs = tmp_path / "input"
    inputs.mkdir()
    for file in (beauty, baby):
        (inputs / file.name).symlink_to(file)
    with gzip.open(beauty) as lines, baby.open(newline="") as rows:
        expected = sum(1 for _ in lines) + sum(1 for _ in csv.DictReader(rows))
    settings = {
        "data": {"input_base": str(inputs)},
        "evaluation": {"min_accuracy": 0.6},
        # Nine of ten reviews are positive.
        "training": {"epochs": 2, "class_weights": "balanced"},
    }
    workspace = Workspace(tmp_path, settings)
    done = workspace.run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{expected:,} read: " in done.stdout
    [rejected] = workspace.store().get_artifacts_by_type("components.RejectedLines")
    counts = {
        name: value.int_value
        for name, value in rejected.custom_properties.items()
        if value.HasField("int_value")
    }
    assert sum(counts.values()) == expected
    assert counts["neutral"] > 0
