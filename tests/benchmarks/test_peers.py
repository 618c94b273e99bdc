"""The table of the peers: its ratios; and a run of every peer."""

import dataclasses
import re
import subprocess
import sys
import tempfile
from glob import glob
from pathlib import Path

import pytest

import sample_data
from benchmarks import peer_ours, usage
from benchmarks.peer_results import Result, by_peer, read, table, write
from benchmarks.strategies import MODELS
from trainer_module.settings import TrainingJob

SAMPLE = Path(sample_data.__file__).parent / "reviews.ft.txt"
FASTTEXT = Result("fasttext", 1, 20.0, 200_000, 5, 0.95, 300 * 2**20, 400_000_000)
REFERENCE = Result("reference", 1, 800.0, 200_000, 1, None, 2**30, 10**7, extrapolated=True)
NGRAM_LINEAR = Result("ngram_linear", 1, 9.0, 180_000, 2, 0.955, 2**30, 8 * 10**6)
SKLEARN = Result("scikit-learn", 1, 60.0, 200_000, None, 0.95, 1, 1)


def rows(*results):
    """Title -> cell, of each row."""
    columns = table(by_peer(results, test_reviews=10_000)).columns
    cells = [list(column.cells) for column in columns]
    titles = [str(column.header) for column in columns]
    return [dict(zip(titles, row, strict=True)) for row in zip(*cells, strict=True)]


def seeds(result, **values):
    """Return a result for each value of some attributes, with seeds from 1."""
    return [
        dataclasses.replace(result, seed=seed, **dict(zip(values, each, strict=True)))
        for seed, each in enumerate(zip(*values.values(), strict=True), 1)
    ]


def test_peers_are_compared_by_the_reviews_that_they_trained_on():
    fasttext, ours = rows(FASTTEXT, NGRAM_LINEAR)
    assert (fasttext["s per 1M reviews"], ours["s per 1M reviews"]) == ("100", "50")
    assert (fasttext["one epoch, s per 1M"], ours["one epoch, s per 1M"]) == ("20", "25")
    assert (fasttext["s per 1M / ours"], ours["s per 1M / ours"]) == ("2.00", "1.00")


def test_a_time_that_was_extrapolated_is_marked_and_an_unknown_accuracy_is_left_out():
    reference, _ = rows(REFERENCE, NGRAM_LINEAR)
    assert reference["train, s"] == "~800.0"
    assert reference["accuracy"] == reference["test set"] == ""


def test_without_ours_there_is_no_ratio():
    assert rows(FASTTEXT)[0]["s per 1M / ours"] == ""


def test_a_solver_without_epochs_has_no_time_of_one():
    assert rows(SKLEARN)[0]["one epoch, s per 1M"] == ""


def test_the_trainings_of_a_peer_are_one_row():
    fasttext = seeds(FASTTEXT, seconds=(20.0, 90.0, 22.0), accuracy=(0.951, 0.952, 0.953))
    shown, _ = rows(fasttext[0], NGRAM_LINEAR, *fasttext[1:])
    assert (shown["train, s"], shown["model, MB"]) == ("22.0", "400.0")
    # Student's t with two degrees of freedom is 4.303 at 0.975; the deviation is 0.001.
    assert (shown["accuracy"], shown["over seeds"]) == ("0.9520", "± 0.0025")
    # Wilson's interval of 9,520 of 10,000, by its formula.
    assert shown["test set"] == "0.9476-0.9560"


def test_one_training_has_no_interval_over_seeds():
    assert rows(FASTTEXT)[0]["over seeds"] == ""


def test_the_chart_has_every_complete_peer(tmp_path):
    figures, extra, chart = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "peers.svg"
    ours = seeds(NGRAM_LINEAR, seconds=(9.0, 9.5), accuracy=(0.954, 0.956))
    write([FASTTEXT, *ours, REFERENCE], 10_000, figures)
    write([dataclasses.replace(REFERENCE, accuracy=0.94), SKLEARN], 10_000, extra)
    command = [sys.executable, "-m", "benchmarks.peer_chart"]
    for files, left_out in (([figures], True), ([extra, figures], False)):
        done = subprocess.run(
            [str(word) for word in (*command, *files, chart)],
            cwd=usage.REPOSITORY,
            check=True,
            capture_output=True,
            text=True,
        )
        assert ("reference" in done.stdout) == left_out
    labels = re.findall(r">([^<>]*)</text>", chart.read_text())
    assert {
        "ngram_linear: 0.9550, 8.0 MB",
        "fasttext: 0.9500, 400.0 MB",
        "scikit-learn: 0.9500, 0.0 MB",
        "reference: 0.9400, 10.0 MB",
    } <= set(labels)
    assert len(chart.read_text()) < 40_000


def test_peak_memory_is_in_bytes():
    # In a process of its own: the tests before this one may have had more memory than it has now.
    figures = subprocess.run(
        [
            sys.executable,
            "-c",
            "from trainer_module.cluster.resources import peak_rss\n"
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


def test_a_peer_trains_with_every_seed(tmp_path):
    figures, reviews = tmp_path / "figures.json", tmp_path / "reviews.txt"
    reviews.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:2000]))
    command = [sys.executable, "-m", "benchmarks.peers", reviews, reviews]
    options = ["--only", "fasttext,scikit-learn", "--seeds", "2", "--json", figures]
    subprocess.run([str(word) for word in (*command, *options)], cwd=usage.REPOSITORY, check=True)
    for peer in read(figures):
        assert [result.seed for result in peer.results] == [1, 2]
        assert peer.seed_margin is not None and peer.test_reviews == 2000


@pytest.mark.exhaustive
@pytest.mark.slow
def test_every_peer_learns_the_sample(tmp_path):
    figures = tmp_path / "figures.json"
    train, test = tmp_path / "train.txt", tmp_path / "test.txt"
    lines = SAMPLE.read_text().splitlines(keepends=True)[:6000]
    train.write_text("".join(lines[:-500]))
    test.write_text("".join(lines[-500:]))
    command = [sys.executable, "-m", "benchmarks.peers", train, test]
    options = ["--reference-steps", "2", "--seeds", "1", "--scratch", tmp_path, "--json", figures]
    settings = ["--set", "training.batch_size_per_replica=32"]
    done = subprocess.run(
        [str(word) for word in (*command, *options, *settings)],
        cwd=usage.REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results = {peer.name: peer for peer in read(figures)}
    assert list(results) == [
        "fasttext",
        "fasttext_compressed",
        "scikit-learn",
        "reference",
        MODELS[0],
        f"{MODELS[0]}_compressed",
    ]
    for name, peer in results.items():
        assert peer.seconds > 0 and peer.test_reviews == 500
        if name == "reference":
            assert peer.results[0].extrapolated and peer.accuracy is None
        else:
            assert peer.accuracy > 0.8, name
    for name in ("fasttext", MODELS[0]):
        assert results[f"{name}_compressed"].size < results[name].size / 2
