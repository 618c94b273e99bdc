"""The estimate for more cores: its formulas, and the profile of serial code."""

import os
import subprocess
import sys
import textwrap
from itertools import pairwise

import pytest

from benchmarks import cores, serial_profile, usage
from benchmarks.cores import Cost
from benchmarks.serial_profile import Sample


def test_the_serial_fraction_is_that_of_karp_and_flatt():
    # A quarter is serial: 25 + 75 / 2.
    cost = Cost(alone=100.0, together=62.5, cores=2, cpu=100.0)
    assert cost.serial == pytest.approx(0.25)
    assert cost.seconds(2) == pytest.approx(62.5)
    assert cost.seconds(64) == pytest.approx(25 + 75 / 64)


@pytest.mark.parametrize(("together", "serial"), [(130.0, 1.0), (45.0, 0.0)])
def test_a_serial_fraction_is_at_least_nothing_and_at_most_everything(together, serial):
    assert Cost(100.0, together, 2, 100.0).serial == serial


def test_the_run_is_the_sum_of_its_components():
    table = cores.costs_table({"A": Cost(10, 10, 2, 9), "B": Cost(90, 45, 2, 88)})
    *_, last = zip(*[column.cells for column in table.columns], strict=True)
    # 10 + 90 / 16 and 10 + 90 / 64; the serial fraction of all is a tenth.
    assert last == ("the run", "97.0", "100.0", "55.0", "0.10", "15.6", "11.4", "8.8")


def test_a_run_on_one_core_uses_one():
    count = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]
    before = os.sched_getaffinity(0)
    with cores.on_cores(1):
        counted = subprocess.run(count, check=True, capture_output=True, text=True).stdout
    assert int(counted) == 1
    assert os.sched_getaffinity(0) == before


def test_samples_are_summed_by_their_kind_and_place():
    samples = [
        Sample(1.0, 0.5, 0.5, 0.5, "before"),
        Sample(2.0, 0.5, 0.5, 0.45, "parse"),
        Sample(3.0, 0.5, 1.0, 0.5, "compress"),
        Sample(4.0, 0.5, 0.05, 0.05, "read"),
        Sample(5.0, 0.25, 0.25, 0.25, "parse"),
    ]
    found = serial_profile.summary(samples, 1.0, 5.0)
    assert found.seconds == {"one thread": 0.75, "several threads": 0.5, "waiting": 0.5}
    assert found.serial == {"parse": 0.75}


def test_the_profile_finds_the_serial_function(tmp_path):
    """The module computes in one thread, then compresses in two, then sleeps."""
    (tmp_path / "phases.py").write_text(
        textwrap.dedent(
            """
            import sys, threading, time, zlib

            def count():
                end = time.thread_time() + 1.5
                while time.thread_time() < end:
                    sum(range(1000))

            def compress():
                data = bytes(range(256)) * 2**14
                end = time.thread_time() + 1.5
                while time.thread_time() < end:
                    zlib.compress(data, 9)

            marks = [time.time()]
            count()
            marks.append(time.time())
            threads = [threading.Thread(target=compress) for _ in range(2)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            marks.append(time.time())
            time.sleep(1.5)
            marks.append(time.time())
            print(*marks, *sys.argv[1:])
            """
        )
    )
    file = tmp_path / "samples.jsonl"
    command = [sys.executable, "-m", "benchmarks.serial_profile", str(file), "phases", "word"]
    path = os.pathsep.join([str(tmp_path), str(usage.REPOSITORY)])
    done = subprocess.run(
        command,
        cwd=usage.REPOSITORY,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    *marks, word = done.stdout.split()
    assert word == "word"
    samples = serial_profile.read(file)
    single, double, idle = (
        serial_profile.summary(samples, float(start), float(end)).seconds
        for start, end in pairwise(marks)
    )
    # Other work on the machine makes more of the time "waiting".
    assert single["one thread"] > 5 * single["several threads"]
    assert double["several threads"] > single["several threads"]
    assert idle["waiting"] > 1
    serial = serial_profile.summary(samples, 0.0, float(marks[1])).serial
    assert serial.most_common(1)[0][0].endswith(".count")


def test_the_run_has_a_cost_for_everything_between_its_components():
    def run(wall, seconds):
        components = {"Trainer": {"s": seconds, "cpu": 8.0, "start": 0.0}}
        return {"seconds": wall, "cpu": 10.0, "components": components}

    costs = cores._costs({1: [run(14.0, 10.0), run(13.0, 9.0)], 2: [run(9.0, 6.0)]})
    assert costs["Trainer"] == Cost(9.0, 6.0, 2, 8.0)
    assert costs["between components"] == Cost(4.0, 3.0, 2, 2.0)


def test_the_kinds_of_a_component_are_columns():
    samples = [Sample(1.0, 0.5, 0.5, 0.5, "parse"), Sample(2.0, 1.5, 3.0, 1.5, "compress")]
    table = cores.kinds_table({"Transform": serial_profile.summary(samples, 0.0, 2.0)})
    cells = [list(column.cells) for column in table.columns]
    assert cells == [["Transform"], ["0.5"], ["1.5"], ["0.0"]]
