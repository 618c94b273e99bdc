"""The table of the reference experiment: its ratios, and a small run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sample_data
from benchmarks import usage
from benchmarks.reference_table import REPORTED, Epoch, table

SAMPLE = Path(sample_data.__file__).parent / "reviews.ft.txt"
COMMAND = [sys.executable, "-m", "benchmarks.reference_table"]


def test_reported_seconds_are_divided_by_ours():
    ours = [
        Epoch("ngram_linear", 512, 20.0, 0.15, 0.95, training=15.0),
        Epoch("cnn_lstm", 2056, 400.0, 0.16, 0.94, training=350.0),
    ]
    columns = table(ours).columns
    rows = [list(row) for row in zip(*[column.cells for column in columns], strict=True)]
    assert [str(column.header) for column in columns[-2:]] == [
        "s / ngram_linear 512",
        "s / cnn_lstm 2056",
    ]
    assert len(rows) == len(REPORTED) + 2
    reported = ["TPU, 8 cores", "2056", "100.0", "", "0.2823", "0.8856", "5.00", "0.25"]
    assert reported in rows
    assert rows[-1] == [
        *("cnn_lstm", "2056", "400.0", "350.0", "0.1600", "0.9400"),
        *("20.00", "1.00"),
    ]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["train.txt"], "requires either TRAIN and EVAL, or --from"),
        (["--from", "nowhere"], "no train.ft.txt.bz2, and not without .bz2"),
    ],
)
def test_files_or_a_folder_are_required(words, problem):
    done = subprocess.run([*COMMAND, *words], cwd=usage.REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 2
    assert problem in done.stderr


@pytest.mark.slow
def test_an_epoch_on_generated_reviews(tmp_path):
    lines = SAMPLE.read_text().splitlines(keepends=True)
    (tmp_path / "train.ft.txt").write_text("".join(lines[:4000]))
    (tmp_path / "test.ft.txt").write_text("".join(lines[4000:5000]))
    figures = tmp_path / "figures.json"
    options = ["--train", "3000", "--eval", "500", "--models", "ngram_linear", "--batches", "32"]
    files = ["--from", tmp_path, "--scratch", tmp_path, "--json", figures]
    done = subprocess.run(
        [str(word) for word in (*COMMAND, *files, *options)],
        cwd=usage.REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    [epoch] = json.loads(figures.read_text())
    assert (epoch["name"], epoch["batch"]) == ("ngram_linear", 32)
    assert epoch["val_accuracy"] > 0.8
    assert 0 < epoch["training"] < epoch["seconds"]
