"""The table of the peers: its ratios; and a run of every peer."""

import json
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path

import pytest

import sample_data
from benchmarks import peer_ours, usage
from benchmarks.peers import Result, table
from benchmarks.strategies import MODELS
from trainer_module.settings import TrainingJob

SAMPLE = Path(sample_data.__file__).parent / "reviews.ft.txt"
FASTTEXT = Result("fasttext", 20.0, 200_000, 5, 0.95, 300 * 2**20)
REFERENCE = Result("reference", 800.0, 200_000, 1, None, 2**30, extrapolated=True)
NGRAM_LINEAR = Result("ngram_linear", 9.0, 180_000, 2, 0.955, 2**30)


def rows(*results):
    """Title -> cell, of each row."""
    columns = table(list(results)).columns
    cells = [list(column.cells) for column in columns]
    titles = [str(column.header) for column in columns]
    return [dict(zip(titles, row, strict=True)) for row in zip(*cells, strict=True)]


def test_peers_are_compared_by_the_reviews_that_they_trained_on():
    fasttext, ours = rows(FASTTEXT, NGRAM_LINEAR)
    assert (fasttext["s per 1M reviews"], ours["s per 1M reviews"]) == ("100", "50")
    assert (fasttext["one epoch, s per 1M"], ours["one epoch, s per 1M"]) == ("20", "25")
    assert (fasttext["s per 1M / ours"], ours["s per 1M / ours"]) == ("2.00", "1.00")


def test_a_time_that_was_extrapolated_is_marked_and_an_unknown_accuracy_is_left_out():
    reference, _ = rows(REFERENCE, NGRAM_LINEAR)
    assert reference["train, s"] == "~800.0"
    assert reference["accuracy"] == ""


def test_without_ours_there_is_no_ratio():
    assert rows(FASTTEXT)[0]["s per 1M / ours"] == ""


def test_a_solver_without_epochs_has_no_time_of_one():
    assert (
        rows(Result("scikit-learn", 60.0, 200_000, None, 0.95, 1))[0]["one epoch, s per 1M"] == ""
    )


def test_peak_memory_is_in_bytes():
    # In a process of its own: the tests before this one may have had more memory than it has now.
    figures = subprocess.run(
        [
            sys.executable,
            "-c",
            "from trainer_module.loop.memory import peak_rss\n"
            "print(peak_rss())\n"
            "block = b'x' * (64 * 2**20)\n"
            "print(peak_rss())\n",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    before, after = map(int, figures)
    assert 60 * 2**20 < after - before < 100 * 2**20


def test_the_error_of_a_failed_peer_contains_the_path_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "kept"))
    (tmp_path / "kept").mkdir()
    with pytest.raises(SystemExit, match=r"no_such_module failed with exit code 1; log: "):
        usage.figures_of("benchmarks.no_such_module", log=tmp_path / "log")
    assert "No module named" in (tmp_path / "kept" / "benchmark-failed.log").read_text()


def test_the_train_files_can_be_read_several_times(tmp_path):
    written = tmp_path / "Split-train"
    written.mkdir()
    for part in ("a.gz", "b.gz"):
        (written / part).write_text(part)
    job = TrainingJob(
        train_files=[str(written / "*")],
        eval_files=[],
        transform_graph="",
        serving_model_dir="",
        model_run_dir="",
        checkpoint_dir="",
    )
    [pattern] = peer_ours.repeated(job, 3, tmp_path / "links").train_files
    contents = sorted(Path(file).read_text() for file in glob(pattern))
    assert contents == ["a.gz"] * 3 + ["b.gz"] * 3


@pytest.mark.slow
def test_every_peer_learns_the_sample(tmp_path):
    figures = tmp_path / "figures.json"
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    lines = SAMPLE.read_text().splitlines(keepends=True)[:6000]
    train.write_text("".join(lines[:-500]))
    test.write_text("".join(lines[-500:]))
    command = [sys.executable, "-m", "benchmarks.peers", train, test]
    options = ["--reference-steps", "2", "--scratch", tmp_path, "--json", figures]
    settings = ["--set", "training.batch_size_per_replica=32"]
    done = subprocess.run(
        [str(word) for word in (*command, *options, *settings)],
        cwd=usage.REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results = {result["peer"]: result for result in json.loads(figures.read_text())}
    assert list(results) == ["fasttext", "scikit-learn", "reference", MODELS[0]]
    assert results["reference"]["extrapolated"]
    for name in ("fasttext", "scikit-learn", MODELS[0]):
        assert results[name]["accuracy"] > 0.8, name
    assert all(result["seconds"] > 0 for result in results.values())
