"""`amazon-reviews predict --input … --output …` as a command: killed, interrupted, in a pipe."""

import csv
import json
import os
import re
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from preprocessing.reading import pieces
from serving.batch import work
from tests.waiting import wait

pytestmark = pytest.mark.slow

# With units of some hundred lines, a run has many units.
SMALL_UNITS = """
from preprocessing.reading import pieces
from serving.batch import work
from tests.waiting import wait
pieces._PLAIN_BYTES = work._BYTES_PER_UNIT = 20_000
from cli import command
command.main()
"""
# Prints the peak memory at the end of a run with units of 2 MB.
PEAK = """
import sys
from preprocessing.reading import pieces
from serving.batch import work
from tests.waiting import wait
from core.machine import peak_rss
pieces._PLAIN_BYTES, work._BYTES_PER_UNIT = 1 << 20, 2 << 20
from cli import command
try:
    command.main()
finally:
    print("PEAK", peak_rss(), file=sys.stderr)
"""
# A list of the lines of the larger input would take twice as much.
MOST_GROWTH = 64 << 20
TEXTS = [f"{'good' if n % 3 else 'bad'} phone {n}" for n in range(100_000)]


def start(root, *words, program=SMALL_UNITS):
    environment = {**os.environ, "PIPELINE_SET": f"paths.root={root}"}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = [sys.executable, "-c", program, "predict", *map(str, words)]
    return subprocess.Popen(words, env=environment, **pipes)


def test_a_run_that_is_ended_leaves_no_output_and_the_last_one_completes(
    root, tmp_path, call, capfd, monkeypatch
):
    source, output = tmp_path / "in.txt", tmp_path / "scores.csv"
    source.write_text("\n".join(TEXTS))
    words = ("--input", str(source), "--output", str(output))
    ends = ((signal.SIGKILL, -9, 3), (signal.SIGTERM, 130, 6), (signal.SIGINT, 130, 9))
    for sign, code, units in ends:
        process = start(root, *words)
        folder = tmp_path / ".scores.csv.partial"
        wait(lambda: process.poll() or len(list(folder.glob("*.arrow"))) >= units)  # noqa: B023
        process.send_signal(sign)
        _, error = process.communicate(timeout=300)
        assert process.returncode == code, error
        assert {path.name for path in tmp_path.iterdir()} == {"in.txt", ".scores.csv.partial"}
        if sign != signal.SIGKILL:
            *_, last = error.decode().splitlines()
            kept = (
                "interrupted: [1-9][0-9]* of [0-9]+ units are kept; repeat the command to continue"
            )
            assert re.fullmatch(kept, last)
            assert "Traceback" not in error.decode()

    for module, name in ((pieces, "_PLAIN_BYTES"), (work, "_BYTES_PER_UNIT")):
        monkeypatch.setattr(module, name, 20_000)
    assert call("predict", *words) == 0
    printed = capfd.readouterr().out
    assert "100,000 reviews scored" in printed and "already finished" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"in.txt", "scores.csv"}
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["position"]) for row in rows] == list(range(1, len(TEXTS) + 1))
    labels = ["positive" if "good" in text else "negative" for text in TEXTS]
    assert [row["label"] for row in rows] == labels


@pytest.mark.exhaustive
def test_memory_does_not_grow_with_the_input(root, tmp_path):
    peaks = []
    for lines in (50_000, 1_500_000):
        source, output = tmp_path / f"{lines}.txt", tmp_path / f"{lines}.csv"
        with source.open("w") as file:
            file.writelines(f"good phone {number}\n" for number in range(lines))
        process = start(root, "--input", source, "--output", output, program=PEAK)
        out, error = process.communicate(timeout=600)
        assert f"{lines:,} reviews scored".encode() in out, error
        peaks.append(int(error.rpartition(b"PEAK ")[2]))
    assert peaks[1] - peaks[0] < MOST_GROWTH, peaks


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_an_output_replaces_an_earlier_one_and_no_reviews(call, tmp_path, capfd, suffix):
    source, output, reviews = (tmp_path / f"{name}.{suffix}" for name in ("in", "scores", "train"))
    table = pa.table({"label": [1, 2], "text": ["good phone", "bad phone"]})
    for file in (source, reviews):
        if suffix == "parquet":
            pq.write_table(table, file)
        else:
            rows = table.to_pylist()
            lines = [json.dumps(row) for row in rows]
            if suffix == "csv":
                lines = ["label,text", *(f"{row['label']},{row['text']}" for row in rows)]
            file.write_text("".join(f"{line}\n" for line in lines))
    before = reviews.read_bytes()
    words = ("predict", "--input", str(source), "--output")
    assert [call(*words, str(output)) for _ in range(2)] == [0, 0]
    assert call(*words, str(reviews)) == 2
    message = f"--output: {reviews} is there and is not an earlier output of predict"
    assert message in capfd.readouterr().err
    assert reviews.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--input", "x.csv"], "--input requires --output"),
        (["--output", "x.csv"], "--output, --id and --probabilities require --input"),
        (["-i", "x.csv", "-o", "x.xlsx"], "must be a .csv, .jsonl or .parquet file"),
        (["-i", "", "-o", "x.csv"], "--input: the value is empty"),
        (["text", "-o", ""], "--output: the value is empty"),
        (["text", "--id", ""], "--id: the value is empty"),
        (["-i", "x.csv", "", "-o", "y.csv"], "--input: a value is empty"),
        (["-i", "x.csv", "-o", "."], "is not a regular file; name another file"),
        (["-i", "missing.csv", "-o", "x.csv"], "missing.csv matches no file"),
    ],
)
def test_arguments_that_do_not_fit(call, tmp_path, capfd, monkeypatch, words, problem):
    monkeypatch.chdir(tmp_path)
    assert call("predict", *words) == 2
    error = capfd.readouterr().err
    assert problem in error and error.count("\n") == 1
    assert not list(tmp_path.iterdir())
