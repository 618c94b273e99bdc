"""Jobs on a real Flink: their errors, their end, and the end of every process."""

import contextlib
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from core.flink import rest
from core.flink.job_server import JobServer, Settings
from core.flink.names import WORKER
from pipeline.config import PipelineConfig
from platforms.beam import beam_args
from platforms.flink import check_job, check_local
from tests.exhaustive import exhaustive
from tests.waiting import wait
from tools.flink_cluster.cluster import FlinkCluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]

JOB = Path(__file__).with_name("flink_job.py")


@pytest.fixture
def start(flink_jars, tmp_path):
    """Return a function that starts a job as a process."""
    started = []

    def function(kind, args=(), **flink):
        config = settings(tmp_path, args, jars=str(flink_jars), **flink)
        command = [sys.executable, str(JOB), kind, str(tmp_path), *beam_args(config)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        started.append(process)
        return process

    yield function
    for process in started:
        process.kill()
        process.communicate()


def settings(folder, args=(), **flink):
    beam = {"runner": "flink", "args": list(args), "flink": {"parallelism": 1, **flink}}
    return PipelineConfig.model_validate({"paths": {"root": str(folder)}, "beam": beam})


def run(process):
    """Return the last line of output, and the exit code."""
    output, _ = process.communicate(timeout=240)
    return output.strip().splitlines()[-1], process.returncode


def below(process):
    return psutil.Process(process.pid).children(recursive=True)


def test_an_error_of_ours_keeps_its_class_and_its_line(start):
    line, code = run(start("bad input"))
    assert line == "InputError: reviews.csv: line 3: 9 stars, between 1 and 5 are allowed"
    assert code == 1


@pytest.mark.exhaustive
def test_any_other_error_of_a_worker_is_one_line(start):
    assert run(start("fault"))[0] == "FlinkError: ZeroDivisionError: division by zero"


def test_every_process_ends_with_a_killed_parent(start, tmp_path):
    job = start("endless")
    wait((tmp_path / "working").exists, 300)
    processes = [psutil.Process(job.pid), *below(job)]
    assert any(process.name() == "java" for process in processes)
    # The workers of this process execute what a client sends them.
    listening = [
        connection.laddr.ip
        for connection in processes[0].net_connections()
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening and set(listening) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    job.kill()
    wait(lambda: not any(alive(process) for process in processes[1:]))


@pytest.mark.parametrize(
    ("sent", "last_line"),
    [
        pytest.param(signal.SIGINT, "KeyboardInterrupt:", marks=pytest.mark.exhaustive),
        (signal.SIGKILL, ""),
    ],
)
def test_a_process_that_ends_cancels_its_job_on_a_cluster(
    start, flink_jars, tmp_path, sent, last_line
):
    with FlinkCluster(flink_jars, tmp_path / "cluster", task_managers=1) as cluster:
        job = start("endless", master=cluster.address, environment="PROCESS")
        wait((tmp_path / "working").exists, 300)
        job.send_signal(sent)
        assert job.communicate(timeout=60)[0].strip() == last_line
        assert_cancelled(cluster.address)


@contextlib.contextmanager
def cluster_and_job_server(jars, folder):
    """Start a cluster and a job server for it; yield the server and the settings of a job."""
    with (
        FlinkCluster(jars, folder / "cluster", 1, worker_pools=True) as cluster,
        job_server(jars, folder, cluster.address) as (server, flink),
    ):
        yield server, {**flink, "environment": "EXTERNAL", "worker_pool": cluster.worker_pool}


@contextlib.contextmanager
def job_server(jars, folder, master):
    """Start a job server for a cluster; yield it and the settings of a job."""
    server = JobServer(
        Settings(str(jars), master, "1g", "512m", 1, str(folder / "server")), "of-the-server-"
    )
    try:
        log = server.log.read_text()
        [port] = re.findall(r"ArtifactStagingService started on \S+:(\d+)", log)
        artifacts = [f"--artifact_endpoint=localhost:{port}"]
        yield server, {"args": artifacts, "job_endpoint": server.endpoint, "master": master}
    finally:
        server.stop()


def test_a_job_server_that_runs_already(start, flink_jars, tmp_path):
    with cluster_and_job_server(flink_jars, tmp_path) as (_, flink):
        config = settings(tmp_path, **flink)
        check_local(config)
        check_job(config)
        assert run(start("count", **flink)) == ("done", 0)
        job = start("endless", **flink)
        wait((tmp_path / "working").exists, 300)
        job.kill()
        assert_cancelled(flink["master"], "FINISHED", "FINISHED")


@pytest.mark.exhaustive
def test_the_loss_of_a_job_server_that_runs_already(start, flink_jars, tmp_path):
    with cluster_and_job_server(flink_jars, tmp_path) as (server, flink):
        job = start("endless", **flink)
        wait((tmp_path / "working").exists, 300)
        server.stop()
        assert run(job)[0] == (
            "FlinkError: the Flink job server ended before the job; see the logs of the "
            f"TaskManagers of {flink['master']}"
        )
        assert_cancelled(flink["master"])


def assert_cancelled(address, *others):
    """Wait until no job runs; one was cancelled, and the others have these states."""
    wait(lambda: not rest.running_jobs(address, ""))
    states = [job["state"] for job in rest.get(address, "/jobs/overview")["jobs"]]
    assert sorted(states) == ["CANCELED", *others]


@pytest.mark.parametrize("victim", [exhaustive("client"), "fork server"])
def test_a_job_continues_after_the_loss_of_its_worker(
    start, flink_jars, tmp_path, monkeypatch, victim
):
    # The address of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("TMPDIR", folder)
        with FlinkCluster(flink_jars, tmp_path / "cluster", task_managers=1) as cluster:
            job = start("endless once", master=cluster.address, environment="PROCESS")
            wait((tmp_path / "working").exists, 300)
            client = next(each for each in below(cluster.task_managers[0]) if is_worker(each))
            # The first client has forked the server.
            [server] = client.children()
            (client if victim == "client" else server).kill()
            assert run(job) == ("done", 0)
            assert server.is_running() is (victim == "client")
        wait(lambda: not workers(folder))


def test_workers_of_a_pool(start, tmp_path):
    with worker_pool() as address:
        assert run(start("count", environment="EXTERNAL", worker_pool=address)) == ("done", 0)
    assert [(tmp_path / name).read_text() for name in ("a", "b")] == ["2", "1"]


def test_a_worker_that_never_comes_up_ends_the_job_after_the_timeout(start, tmp_path):
    worker = script(tmp_path, "echo still loading >>$BEAM_WORKER_LOG; exec sleep 600")
    job = start("count", environment="PROCESS", worker_command=worker, timeout_seconds=15)
    line, code = run(job)
    assert line.startswith(
        "FlinkError: the Flink job made no progress for 15 s (beam.flink.timeout_seconds)"
    )
    assert f"; last line of the workers: still loading; see {tmp_path}/logs/flink-job-" in line
    assert code == 1


def test_the_error_of_a_worker_of_a_pool_ends_the_job_before_the_timeout(start, tmp_path):
    worker = script(tmp_path, "echo no such library >&2; exit 3")
    with worker_pool(f"--worker={worker}") as address:
        job = start("count", environment="EXTERNAL", worker_pool=address, timeout_seconds=600)
        line, _ = run(job)
    assert line.startswith("FlinkError: the Flink job failed: ")
    assert "the Python worker ended with exit code 3: no such library; see " in line


@pytest.mark.exhaustive
def test_the_last_line_of_a_worker_that_ends_at_once(start, tmp_path):
    worker = script(tmp_path, "echo no such library >>$BEAM_WORKER_LOG; exit 3")
    line, _ = run(start("count", environment="PROCESS", worker_command=worker))
    assert line.startswith("FlinkError: the Flink job failed: Process died with exit code 3")
    assert "last line of the workers: no such library" in line


def script(folder, commands):
    """Write a script of the shell that is the command of a worker; return its path."""
    file = folder / "worker"
    file.write_text(f"#!/bin/sh\n{commands}\n")
    file.chmod(0o755)
    return str(file)


@contextlib.contextmanager
def worker_pool(*options):
    """Run a pool whose workers are processes, and return its address."""
    command = [sys.executable, "-m", "core.flink.pool", "localhost:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as pool:
        try:
            yield pool.stdout.readline().removeprefix("worker pool at ").strip()
        finally:
            pool.terminate()


def workers(folder):
    """Return the clients, servers and workers that have this temporary folder."""
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if is_worker(each) and each.environ().get("TMPDIR") == folder:
                found.append(each)
    return found


def is_worker(process):
    return any(word.endswith(WORKER) for word in process.cmdline())


def alive(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
