"""The table of the strategies: the efficiency, and the columns of a row."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sample_data
from benchmarks import usage
from benchmarks.strategies import Row, draw, scaling_efficiency, setups, table

SAMPLE = Path(sample_data.__file__).parent / "reviews.ft.txt"
FIGURES = {
    "examples": 10_000,
    "seconds_per_epoch": [9.0, 4.0],
    "batch_size_per_replica": 512,
    "val_loss": 0.2137,
    "val_accuracy": 0.9138,
}


def row(name, gpus=0, cpu_utilisation=0.9, **figures):
    [setup, *_] = [setup for setup in setups(gpus) if setup.name == name]
    return Row(setup, FIGURES | figures, cpu_utilisation)


def cells(rows):
    """Title -> cell, of each row."""
    columns = table(rows).columns
    titles = [str(column.header) for column in columns]
    return [
        dict(zip(titles, line, strict=True))
        for line in zip(*[list(column.cells) for column in columns], strict=True)
    ]


def test_a_row_shows_the_last_epoch():
    [shown] = cells([row("one_device")])
    assert shown == {
        "strategy": "one_device",
        "devices": "1 CPU",
        "batch per replica": "512",
        "s/epoch": "4.0",
        "val_loss": "0.2137",
        "val_accuracy": "0.9138",
        "s per 1M": "400",
        "CPU": "0.90",
        "efficiency": "1.00",
        "MiB on each server": "",
    }


def test_on_a_cpu_every_row_has_the_same_cores():
    one, two = row("one_device"), row("multi_worker_mirrored", seconds_per_epoch=[9.0, 5.0])
    assert scaling_efficiency(two, [one, two]) == pytest.approx(0.8)


def test_with_gpus_efficiency_is_for_each_of_them():
    one, four = row("one_device", gpus=4), row("mirrored", gpus=4, seconds_per_epoch=[2.0, 1.25])
    assert scaling_efficiency(four, [one, four]) == pytest.approx(0.8)


def test_efficiency_compares_rows_of_the_same_batch_only():
    one, other = row("one_device"), row("mirrored", batch_size_per_replica=2048)
    assert scaling_efficiency(other, [one, other]) is None
    assert cells([one, other])[1]["efficiency"] == ""


def test_what_each_server_holds_is_shown():
    held = [96 * 2**20, 95.5 * 2**20]
    [shown] = cells([row("large_table", parameter_server_bytes=held)])
    assert shown["MiB on each server"] == "96.0, 95.5"


def test_a_cluster_needs_a_gpu_for_each_worker():
    assert [setup.name for setup in setups(1)] == ["one_device", "mirrored", "central_storage"]
    hardware = {setup.name: setup.hardware for setup in setups(4)}
    assert hardware == {
        "one_device": 1,
        "mirrored": 4,
        "central_storage": 4,
        "multi_worker_mirrored": 2,
        "parameter_server": 2,
        "large_table": 2,
    }


def test_the_chart_names_every_row(tmp_path):
    draw([row("one_device"), row("mirrored")], "cnn_lstm", tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text()
    labels = re.findall(r">([^<>]*)</text>", drawn)
    assert {"one_device, 1 CPU, 512", "mirrored, 2 CPU, 512"} <= set(labels)
    assert labels.count("1.00") == 2
    assert len(drawn) < 20_000


def test_cpu_utilisation_covers_the_children():
    busy = "import time\nwhile time.process_time() < 2: pass\nprint(flush=True)\ninput()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    measured = usage.CpuTime()
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        start = time.time()
        measured.sample(process.pid)
        process.stdout.readline()
        measured.sample(process.pid)
        end = time.time()
        process.communicate(b"\n")
    (first, _), (last, _) = measured.samples
    used = measured.utilisation(start, end) * usage.cores() * (last - first)
    # Of the child; that of its parent and of their start comes to it.
    assert 1.9 < used < 5
    assert measured.utilisation(start + 100, start + 200) is None


@pytest.mark.slow
def test_a_strategy_trains_the_sample(tmp_path):
    figures, reviews = tmp_path / "figures.json", tmp_path / "reviews.ft.txt"
    reviews.write_text("".join(SAMPLE.read_text().splitlines(keepends=True)[:6000]))
    command = [sys.executable, "-m", "benchmarks.strategies", reviews, "--only", "one_device"]
    options = ["--epochs", "1", "--batches", "32", "--scratch", tmp_path, "--json", figures]
    done = subprocess.run(
        [str(word) for word in (*command, *options)],
        cwd=usage.REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    [trained] = json.loads(figures.read_text())
    assert trained["setup"]["name"] == "one_device"
    assert trained["figures"]["val_accuracy"] > 0.8
    assert trained["figures"]["batch_size_per_replica"] == 32
    assert 0 < trained["cpu_utilisation"] <= 1.05
    [shown] = cells([Row(setups(0)[0], trained["figures"], trained["cpu_utilisation"])])
    assert shown["efficiency"] == "1.00"
