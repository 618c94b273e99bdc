"""The benchmark of the whole Kaggle set: its archives, and a small run of all of it."""

import bz2
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import sample_data
from benchmarks import usage, whole_files
from benchmarks.whole import ratios_table

SAMPLE = Path(sample_data.__file__).parent / "reviews.ft.txt"
COMMAND = [sys.executable, "-m", "benchmarks.whole"]


@pytest.fixture
def source(tmp_path):
    """Return a folder with labelled reviews, one of the files compressed."""
    folder = tmp_path / "source"
    folder.mkdir()
    lines = SAMPLE.read_text().splitlines(keepends=True)
    (folder / "train.ft.txt").write_text("".join(lines[:4000]))
    (folder / "test.ft.txt.bz2").write_bytes(bz2.compress("".join(lines[4000:5000]).encode()))
    return folder


def read(archive):
    lines = bz2.decompress(archive.read_bytes()).decode().splitlines()
    return [line.split(" ", 1) for line in lines]


def test_the_archives_have_different_reviews_of_both_classes(source, tmp_path):
    whole_files.main(str(source), str(tmp_path), "20100", "300")
    train, test = (read(tmp_path / name) for name in whole_files.NAMES)
    assert (len(train), len(test)) == (20_100, 300)
    texts = [text for _, text in train + test]
    assert len(set(texts)) == len(texts)
    words = [len(text.split()) for text in texts]
    assert sum(words) / len(words) == pytest.approx(80, abs=4)
    positive = sum(label == "__label__2" for label, _ in train)
    assert positive == pytest.approx(10_050, rel=0.05)
    assert {label for label, _ in train} == {"__label__1", "__label__2"}


def test_the_sentences_of_a_review_are_those_of_its_class(tmp_path):
    given = tmp_path / "train.ft.txt"
    given.write_text(
        "".join(
            f"__label__{label} Title {n} {kind}: It is really {kind} {n}. I say {kind} {n}!\n"
            for n in range(50)
            for label, kind in ((1, "bad"), (2, "good"))
        )
    )
    for line in whole_files.recombined(given, 200, set(), seed=1):
        kind, other = ("bad", "good") if line.startswith(b"__label__1 ") else ("good", "bad")
        assert kind.encode() in line and other.encode() not in line


def test_too_few_sentences_are_an_error(tmp_path):
    given = tmp_path / "train.ft.txt"
    given.write_text("__label__1 Bad: It is bad.\n__label__2 Good: It is good.\n")
    with pytest.raises(ValueError, match="too few sentences for 5000 different reviews"):
        list(whole_files.recombined(given, 5000, set(), seed=1))


def test_an_archive_can_be_cut(tmp_path):
    lines = [f"__label__1 {random.random()}\n".encode() for _ in range(30_000)]
    whole_files.write_archive(lines, tmp_path / "all.bz2")
    assert bz2.decompress((tmp_path / "all.bz2").read_bytes()) == b"".join(lines)
    assert list(whole_files.first_lines(tmp_path / "all.bz2", 7)) == lines[:7]


def test_ours_is_divided_by_what_is_alone():
    limits = {"decompress": 3.0, "write": 1.0, "read": 1.0, "hash": 1.0}
    components = {"ReviewExampleGen": 6.0, "Transform": 3.0, "Trainer": 5.0}
    table = ratios_table(
        {
            "limits": limits | {f"{name}_cpu": 2 * limits[name] for name in limits},
            "fasttext": {"seconds": 10.0, "cpu": 20.0},
            "components": {name: {"s": components[name], "cpu": 4.0} for name in components},
            "seconds": 32.0,
            "cpu": 48.0,
        }
    )
    alone, _, _, ours, _, _, *ratios = (list(column.cells) for column in table.columns)
    rows = {(a, o): r for a, o, *r in zip(alone, ours, *ratios, strict=False) if o}
    assert rows == {
        ("decompress + write", "ReviewExampleGen"): ["1.50", "0.50"],
        ("read + hash", "Transform"): ["1.50", "1.00"],
        ("fastText's training", "Trainer"): ["0.50", "0.20"],
        ("fastText's training", "the run"): ["3.20", "2.40"],
        ("all of these", "the run"): ["2.00", "1.50"],
    }


def test_peaks_are_those_of_all_processes_and_of_the_folder(tmp_path):
    child = "import time; x = b'x' * (80 * 2**20); time.sleep(3)"
    parent = (
        "import pathlib, subprocess, sys, time\n"
        f"process = subprocess.Popen([sys.executable, '-c', {child!r}])\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_bytes(b'x' * 2**22)\n"
        "time.sleep(1.5)\n"
        "file.unlink()\n"
        "process.wait()\n"
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "parent.py").write_text(parent)
    peak = usage.Peak(tmp_path / "folder")
    with subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py"), str(tmp_path / "folder" / "file")]
    ) as process:
        while process.poll() is None:
            peak.sample(process.pid)
    assert 90 * 2**20 < peak.memory < 200 * 2**20
    assert 2**22 <= peak.disk < 2**23


@pytest.mark.parametrize(
    ("words", "problem"), [([], "no train.ft.txt.bz2"), (["--from"], "not without .bz2")]
)
def test_a_folder_without_reviews_is_refused(tmp_path, words, problem):
    done = subprocess.run(
        [*COMMAND, *words, str(tmp_path)], cwd=usage.REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert problem in done.stderr


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_small_set_becomes_a_pushed_model(source, tmp_path):
    figures = tmp_path / "figures.json"
    options = ["--train", "3000", "--test", "500", "--scratch", tmp_path, "--json", figures]
    settings = ["training.batch_size_per_replica=32", "transform.ngram_buckets=65536"]
    words = [word for each in settings for word in ("--set", each)]
    done = subprocess.run(
        [str(word) for word in (*COMMAND, "--from", source, *options, *words)],
        cwd=usage.REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(figures.read_text())
    assert found["limits"]["reviews"] == 3500
    assert found["fasttext"]["examples"] == 3000
    assert found["accuracy"] > 0.92
    assert {"ReviewExampleGen", "Transform", "Trainer", "Pusher"} <= set(found["components"])
    assert sum(each["s"] for each in found["components"].values()) < found["seconds"]
    assert 0 < sum(each["cpu"] for each in found["components"].values()) < found["cpu"]
    assert found["memory"] > 300 * 2**20
    assert found["disk"] > 2**20
    for line in ("ReviewExampleGen", "fastText's training", "peak memory"):
        assert line in done.stdout
