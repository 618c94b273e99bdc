"""The benchmark of the Beam runners: every runner gets the same reviews."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from subprocess import PIPE, Popen

import psutil
import pytest

from benchmarks.beam_runners import BEAM_COMPONENTS, generate, sent, tables
from benchmarks.process_tree import ProcessTree
from benchmarks.usage import REPOSITORY
from tests.waiting import wait


def test_the_reviews_are_divided_over_the_files_and_no_two_are_equal(tmp_path):
    generate(tmp_path, 100, 3)
    lines = [file.read_text().splitlines() for file in sorted(tmp_path.iterdir())]
    assert [len(of_file) for of_file in lines] == [33, 33, 34]
    assert len({line for of_file in lines for line in of_file}) == 100


def test_a_table_has_the_ratios_to_the_direct_runner():
    def figures(factor):
        of_components = {name: factor * 10.0 for name in BEAM_COMPONENTS}
        memory = {"pipeline": factor * 2**20, "all together": factor * 2**20}
        return {
            "reviews": 4000,
            "seconds": of_components,
            "cpu": of_components,
            "memory": memory,
            "largest": {"pipeline": 2**19},
            "sent": {"Transform": 2**20} if factor > 1 else {},
        }

    seconds, _, memory, largest, written = tables({"direct": figures(1), "two": figures(3)})
    rows = list(zip(*[list(column.cells) for column in seconds.columns], strict=True))
    assert ("all four", "40.0", "120.0", "3.00") in rows
    assert ("reviews/s", "100", "33", "") in rows
    assert ("pipeline", "1", "3", "3.00") in list(
        zip(*[list(column.cells) for column in memory.columns], strict=True)
    )

    assert ("pipeline", "0", "0", "1.00") in list(
        zip(*[list(column.cells) for column in largest.columns], strict=True)
    )
    assert ("Transform", "", "1.0", "") in list(
        zip(*[list(column.cells) for column in written.columns], strict=True)
    )
    assert len(tables({"direct": figures(1)})) == 4


def test_the_bytes_of_a_job_are_those_of_the_component_that_ran_at_its_start(monkeypatch):
    now = time.time() * 1000
    answers = {
        "/jobs/overview": {
            "jobs": [
                {"jid": "a", "start-time": now - 90_000},
                {"jid": "b", "start-time": now - 50_000},
                {"jid": "c", "start-time": now - 40_000},
            ]
        },
        "/jobs/a": {"vertices": [{"metrics": {"write-bytes": 100}}]},
        "/jobs/b": {"vertices": [{"metrics": {"write-bytes": each}} for each in (7, 8)]},
        "/jobs/c": {"vertices": [{"metrics": {"write-bytes": 20}}]},
    }
    monkeypatch.setattr("core.flink.rest.get", lambda address, path: answers[path])
    end = time.monotonic()
    spans = {"Transform": (end - 60, end - 30), "Evaluator": (end - 20, end)}
    assert sent("localhost:1", spans) == {"Transform": 35, "Evaluator": 0}


def busy_tree():
    """Return the CPU seconds of a child and those after it, and the peaks of both times."""
    busy = "import time\nwhile time.process_time() < 2: pass\nprint(flush=True)\ninput()  # busy"
    with ProcessTree({"# busy": "busy"}) as tree:
        start = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            process.stdout.readline()
            time.sleep(1.5)
            process.communicate(b"\n")
        end = time.monotonic()
        time.sleep(1.5)
        later = time.monotonic()
    seconds = (tree.cpu_seconds(start, later), tree.cpu_seconds(end, later))
    return *seconds, tree.peaks([(start, end)]), tree.peaks([(later, later + 60)])


def test_processes_that_have_ended_keep_their_cpu_time_and_have_no_memory():
    # This process may have other children, such as a server that other tests share.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        cpu, cpu_after, peaks, peaks_after = pool.submit(busy_tree).result()
    assert 1.5 < cpu < 4
    assert cpu_after < 0.5
    assert peaks.of_kinds["busy"] == peaks.of_processes["busy"] > 2**20
    assert 2**20 < peaks.together <= sum(peaks.of_kinds.values())
    assert peaks_after == ({}, {}, 0)


def test_the_memory_of_a_kind_is_that_of_all_of_its_processes():
    child = "print(flush=True)\ninput()  # child"
    command = [sys.executable, "-c", child]
    with contextlib.ExitStack() as stack:
        tree = stack.enter_context(ProcessTree({"# child": "child"}))
        processes = [stack.enter_context(Popen(command, stdin=PIPE, stdout=PIPE)) for _ in range(3)]
        for process in processes:
            process.stdout.readline()
        start = time.monotonic()
        time.sleep(1.2)
        peaks = tree.peaks([(start, time.monotonic())])
        for process in processes:
            process.communicate(b"\n")
    assert 2.5 < peaks.of_kinds["child"] / peaks.of_processes["child"] <= 3


def test_after_the_samples_an_orphan_is_not_a_child_of_this_process():
    with ProcessTree({}):
        pass
    orphan = "import subprocess; print(subprocess.Popen(['sleep', '20'], stdout=2).pid)"
    done = subprocess.run([sys.executable, "-c", orphan], stdout=subprocess.PIPE, check=True)
    pid = int(done.stdout)
    wait(lambda: psutil.Process(pid).ppid() != os.getpid())
    os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("flink")
def test_both_runners_in_one_run(flink_jars, tmp_path):
    found = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.beam_runners", "--reviews", "3000"]
    options = ["--files", "3", "--only", "direct,local", "--scratch", tmp_path, "--json", found]
    done = subprocess.run(
        [str(word) for word in (*command, *options)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "local / direct" in done.stdout
    direct, local = json.loads(found.read_text()).values()
    for figures in (direct, local):
        assert figures["reviews"] == 3000
        assert all(figures["seconds"][name] > 0 for name in BEAM_COMPONENTS)
        assert figures["memory"]["pipeline"] > 2**20
    assert local["memory"]["job server"] > 2**20
    assert "job server" not in direct["memory"]
