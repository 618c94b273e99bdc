"""Each benchmark runs on a part of the sample; and the figures that a table derives."""

import bz2
import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from sklearn import metrics

import sample_data
from benchmarks import peer_folds, usage, whole
from benchmarks.peer_files import read_reviews, scores
from benchmarks.peer_results import Result, by_peer, table
from benchmarks.strategies import Row, scaling_efficiency, setups
from cli.run_state import NOT_RUN, Component, RunState
from components.run_report.history import Run
from core.events import Failed
from platforms.local import runs
from tests.waiting import wait

SAMPLE = Path(sample_data.__file__).parent / "reviews.ft.txt"
SMALL = ["--set", "training.batch_size_per_replica=32"]
FEW_BUCKETS = ["--set", "transform.ngram_buckets=65536"]
RUNS = {
    "many_classes": (["--classes=12", "--texts=6000"], "12 classes; accuracy"),
    "pipeline": (["TRAIN", "--test", "TEST", *SMALL], "until training"),
    "peers": (["TRAIN", "TEST", "--seeds=1", "--reference-steps=2", *SMALL], "scikit-learn"),
    "peer_folds": (
        ["TRAIN", "--folds=2", "--seeds=1", "--only", "ngram_linear", "scikit-learn", *SMALL],
        "fold 2, ",
    ),
    "reference_table": (
        ["--from", "FOLDER", "--train=3000", "--eval=500", "--models=ngram_linear", "--batches=32"],
        "ngram_linear, batch 32",
    ),
    "strategies": (["TRAIN", "--only=one_device", "--epochs=1", "--batches=32"], "one_device"),
    "whole": (
        ["--from", "FOLDER", "--train=3000", "--test=500", *SMALL, *FEW_BUCKETS],
        "peak memory",
    ),
}
"""Script -> its arguments, and a text of its output."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with labelled reviews, one of the files compressed."""
    found = tmp_path_factory.mktemp("reviews")
    lines = SAMPLE.read_text().splitlines(keepends=True)
    (found / "train.ft.txt").write_text("".join(lines[:6000]))
    (found / "test.ft.txt.bz2").write_bytes(bz2.compress("".join(lines[6000:7000]).encode()))
    return found


def run(script, *words):
    command = [sys.executable, "-m", f"benchmarks.{script}", *map(str, words)]
    return subprocess.run(command, cwd=usage.REPOSITORY, capture_output=True, text=True)


def test_shared_memory_that_is_slow_to_measure_is_in_few_samples(monkeypatch):
    def slow(process):
        time.sleep(2)  # so the next measurement is 18 seconds later
        return SimpleNamespace(pss=1000)

    monkeypatch.setattr(psutil.Process, "memory_full_info", slow)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        with usage.ProcessTree() as tree:
            wait(lambda: len(tree.samples()) > 2)
        child.stdin.close()
    first, *others = tree.samples()
    # A value of an earlier time could be that of processes that have ended.
    assert usage.most_together(tree.samples()) == first.together >= 1000
    assert others and not any(each.together for each in others)
    assert all(each.resident["other"] for each in others)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.parametrize("script", RUNS)
def test_the_benchmark_runs(folder, tmp_path, script):
    words, text = RUNS[script]
    files = {"FOLDER": folder, "TRAIN": folder / "train.ft.txt", "TEST": folder / "test.ft.txt.bz2"}
    done = run(script, *(files.get(word, word) for word in words), "--scratch", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert text in done.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.long
def test_peers_train_on_files_of_any_format_and_classes(tmp_path):
    words = ["late", "broken", "refund", "invoice"]
    rows = [f"my {word} order {number},{word}\n" for number in range(60) for word in words]
    for name, part in (("train", rows[:200]), ("test", rows[200:])):
        (tmp_path / f"{name}.csv").write_text("text,category\n" + "".join(part))
    options = ["--seeds=1", "--set=data.labels=each", "--set=data.columns={label: category}"]
    options += ["--preset=topics", "--set=training.epochs=1"]
    options += [
        "--only",
        "fasttext",
        "scikit-learn",
        "deep_averaging",
        "--fasttext",
        '{"epoch": 50}',
    ]
    files = tmp_path / "train.csv", tmp_path / "test.csv"
    figures = tmp_path / "figures.json"
    done = run("peers", *files, *options, "--scratch", tmp_path, "--json", figures)
    assert done.returncode == 0, done.stdout + done.stderr
    results = {each["peer"]: each for each in json.loads(figures.read_text())["results"]}
    assert results["scikit-learn"]["examples"] == 200
    assert results["scikit-learn"]["macro_f1"] == 1.0
    assert results["fasttext"]["epochs"] == 50
    assert all(each["mean_absolute_error"] is None for each in results.values())


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.long
@pytest.mark.xdist_group("flink")
def test_the_benchmark_of_the_beam_runners_runs(flink_jars, tmp_path):
    words = [
        "--reviews=3000",
        "--files=3",
        "--warm",
        "--only",
        "direct",
        "one",
        "--scratch",
        tmp_path,
    ]
    done = run("beam_runners", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one / direct" in done.stdout


def cells(drawn):
    """Return title -> cell, of each row of a table."""
    titles = [str(column.header) for column in drawn.columns]
    rows = zip(*[list(column.cells) for column in drawn.columns], strict=True)
    return [dict(zip(titles, row, strict=True)) for row in rows]


def test_the_benchmark_of_a_whole_run_names_the_result_of_a_run_without_a_pushed_model(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(usage, "run_module", lambda *words, **options: "")
    monkeypatch.setattr(runs, "find_run", lambda config, run_id: Run("amazon", "1", error="full"))
    with pytest.raises(SystemExit, match="no model was pushed: the result of the run is failed"):
        whole.run(tmp_path, tmp_path / "run", [], tmp_path / "log")


def test_the_scores_are_those_of_scikit_learn():
    labels, predicted = [0, 0, 1, 2, 2, 2, 4], [0, 3, 1, 2, 1, 2, 4]
    found = scores(labels, predicted)
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(labels, predicted))
    # scikit-learn includes a class that is only predicted, unless the classes are given.
    assert found["macro_f1"] == pytest.approx(
        metrics.f1_score(labels, predicted, labels=[0, 1, 2, 4], average="macro")
    )
    assert found["mean_absolute_error"] == pytest.approx(
        metrics.mean_absolute_error(labels, predicted)
    )


def test_the_label_of_a_line_is_its_number(tmp_path):
    file = tmp_path / "reviews.txt"
    file.write_text("__label__1 bad\n__label__77 where is my card\n__label__2\n")
    assert list(read_reviews(str(file))) == [(0, "bad"), (76, "where is my card"), (1, "")]
    file.write_text("__label__1 bad\n__label__0 bad\n")
    with pytest.raises(ValueError, match=r"reviews\.txt:2: no label"):
        list(read_reviews(str(file)))


def test_the_scores_of_many_classes_have_columns():
    stars = [
        dataclasses.replace(FASTTEXT, seed=seed, macro_f1=f1, mean_absolute_error=error)
        for seed, f1, error in ((1, 0.5, 0.25), (2, 0.6, 0.35))
    ]
    fasttext, ours = cells(table(by_peer([*stars, NGRAM_LINEAR], test_reviews=10_000)))
    assert (fasttext["macro-F1"], fasttext["MAE"]) == ("0.5500", "0.3000")
    assert (ours["macro-F1"], ours["MAE"]) == ("", "")


def test_each_review_is_held_out_in_one_fold_and_trained_on_in_the_others(tmp_path):
    reviews = [f"__label__{number % 5 + 1} review {number}" for number in range(503)]
    tested = []
    for number in range(5):
        files = peer_folds.write_fold(reviews, number, 5, tmp_path / str(number))
        parts = {split: file.read_text().splitlines() for split, file in files.items()}
        assert sorted(line for part in parts.values() for line in part) == sorted(reviews)
        assert len(parts["test"]) in (100, 101)
        assert 0 < len(parts["eval"]) < 0.03 * len(parts["train"])
        tested += parts["test"]
    assert sorted(tested) == sorted(reviews)


def test_the_scores_of_folds_are_those_of_all_their_reviews():
    def fold(accuracy, error):
        return [
            dataclasses.replace(FASTTEXT, seed=seed, accuracy=accuracy, mean_absolute_error=error)
            for seed in (1, 2)
        ]

    folds, sizes = [fold(0.5, 1.0), fold(1.0, 0.0)], [300, 100]
    first, second = peer_folds.pool(folds, sizes)
    assert (first.seed, second.seed) == (1, 2)
    assert first.accuracy == pytest.approx(250 / 400)
    assert first.mean_absolute_error == pytest.approx(300 / 400)
    assert first.macro_f1 is None
    each = cells(peer_folds.folds_table(folds, sizes))
    assert [row["fold 2, 100 reviews"] for row in each] == ["1.0000", "0.0000"]


FASTTEXT = Result("fasttext", 1, 20.0, 200_000, 0.951, 300 * 2**20, 400_000_000, 5)
REFERENCE = Result("reference", 1, 800.0, 200_000, None, 2**30, 10**7, 1, extrapolated=True)
NGRAM_LINEAR = Result("ngram_linear", 1, 9.0, 180_000, 0.955, 2**30, 8 * 10**6, 2)


def test_peers_are_compared_by_the_reviews_that_they_trained_on():
    others = [
        dataclasses.replace(FASTTEXT, seed=2, seconds=90.0, accuracy=0.952),
        dataclasses.replace(FASTTEXT, seed=3, seconds=22.0, accuracy=0.953),
    ]
    peers = by_peer([FASTTEXT, NGRAM_LINEAR, REFERENCE, *others], test_reviews=10_000)
    fasttext, ours, reference = cells(table(peers))
    assert (fasttext["s per 1M reviews"], ours["s per 1M reviews"]) == ("110", "50")
    assert (fasttext["one epoch, s per 1M"], ours["one epoch, s per 1M"]) == ("22", "25")
    assert (fasttext["s per 1M / ours"], ours["s per 1M / ours"]) == ("2.20", "1.00")
    # Student's t with two degrees of freedom is 4.303 at 0.975; the deviation is 0.001.
    assert (fasttext["accuracy"], fasttext["over seeds"]) == ("0.9520", "± 0.0025")
    assert ours["over seeds"] == ""
    # Wilson's interval of 9,520 of 10,000, by its formula.
    assert fasttext["test set"] == "0.9476-0.9560"
    assert (reference["train, s"], reference["accuracy"]) == ("~800.0", "")


def row(name, gpus, seconds, batch=512):
    [setup] = [setup for setup in setups(gpus) if setup.name == name]
    figures = {"examples": 10_000, "seconds_per_epoch": [9.0, seconds]}
    return Row(setup, figures | {"batch_size_per_replica": batch}, 0.9)


def test_the_efficiency_of_a_strategy_is_for_each_gpu_and_for_the_same_batch():
    # On a CPU every row has the same cores.
    one, two = row("one_device", 0, 4.0), row("multi_worker_mirrored", 0, 5.0)
    assert scaling_efficiency(two, [one, two]) == pytest.approx(0.8)
    one, four = row("one_device", 4, 4.0), row("mirrored", 4, 1.25)
    assert scaling_efficiency(four, [one, four]) == pytest.approx(0.8)
    assert scaling_efficiency(row("mirrored", 4, 1.25, batch=2048), [one]) is None


def test_a_run_that_failed_before_its_first_component_has_no_figures(tmp_path):
    (tmp_path / "log").write_text("lines")
    components = [Component(name, NOT_RUN) for name in ("ReviewExampleGen", "Transform")]
    state = RunState(components, failure=Failed("no such file"))
    with pytest.raises(SystemExit, match=r"the run failed: .*no such file.*; log: "):
        usage.outcome(state, tmp_path / "log")
