"""Jobs on a real Flink: their errors, their end, and the end of every process."""

import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest
from apache_beam.portability.api import beam_fn_api_pb2

from pipeline.config import PipelineConfig
from platforms.beam import beam_args
from platforms.flink import guard, rest, worker_pool
from platforms.flink.checks import check_local
from platforms.flink.job_server import JobServer
from tests.exhaustive import exhaustive
from tests.waiting import alive, wait
from tools.flink_cluster import FlinkCluster

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("flink")]

JOB = Path(__file__).with_name("flink_job.py")


@pytest.fixture
def start(flink_jars, tmp_path):
    """Return a function that starts a job as a process; an endless one works when it returns."""
    started = []

    def function(kind, args=(), **flink):
        config = settings(tmp_path, args, **{"jars": str(flink_jars), **flink})
        command = [sys.executable, str(JOB), kind, str(tmp_path), *beam_args(config)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        started.append(process)
        if kind.startswith("endless") and "timeout_seconds" not in flink:
            wait((tmp_path / "working").exists, 300)
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
    try:
        output, _ = process.communicate(timeout=240)
    except subprocess.TimeoutExpired as error:
        stacks = Path(process.args[3], "stacks")
        process.send_signal(signal.SIGUSR1)
        wait(stacks.read_text)
        running = [each.cmdline() for each in below(process)]
        pytest.fail(f"{error.stdout!r} after 240 s; {running}\n{stacks.read_text()}")
    return output.strip().splitlines()[-1], process.returncode


def below(process):
    return psutil.Process(process.pid).children(recursive=True)


def test_an_error_of_ours_keeps_its_class_and_its_line(start):
    line, code = run(start("bad input"))
    assert line == "InputError: reviews.csv: line 3: 9 stars, between 1 and 5 are allowed"
    assert code == 1


def test_every_process_ends_with_a_killed_parent(start):
    job = start("endless")
    processes = [psutil.Process(job.pid), *below(job)]
    assert any(process.name() == "java" for process in processes)
    # The workers of this process execute what a client sends them.
    connections = processes[0].net_connections()
    listening = {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}
    assert listening and listening <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    job.kill()
    wait(lambda: not any(alive(process) for process in processes[1:]))


@pytest.fixture(scope="module")
def cluster(flink_jars, tmp_path_factory):
    """Return a cluster with one TaskManager and its worker pool, which all tests here share."""
    folder = tmp_path_factory.mktemp("cluster")
    with FlinkCluster(flink_jars, folder, task_managers=1) as started:
        yield started


def on(cluster):
    """Return the settings of a job on the cluster."""
    return {"master": cluster.address, "worker_pool": cluster.worker_pool}


def blobs(cluster):
    """Return the files that the TaskManager received for its jobs; they remain for an hour."""
    return set(cluster.folder.glob("tmp/**/blob_p-*"))


def last_state(cluster):
    """Wait until no job runs; return the state of the last one."""
    wait(lambda: not rest.running_jobs(cluster.address, ""))
    return max(rest.jobs(cluster.address), key=lambda job: job["start-time"])["state"]


@pytest.mark.exhaustive
def test_the_loss_of_the_job_server_of_a_run(start):
    job = start("endless")
    [java] = [process for process in below(job) if process.name() == "java"]
    java.kill()
    line, code = run(job)
    assert line.startswith("FlinkError: the Flink job server ended before the job")
    assert code == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("sent", "last_line"), [(signal.SIGINT, "KeyboardInterrupt:"), (signal.SIGKILL, "")]
)
def test_a_process_that_ends_cancels_its_job_on_a_cluster(start, cluster, sent, last_line):
    job = start("endless", **on(cluster))
    job.send_signal(sent)
    assert job.communicate(timeout=60)[0].strip() == last_line
    assert last_state(cluster) == "CANCELED"


@pytest.mark.parametrize("cluster_has_jars", [True, exhaustive(False)])
def test_a_job_uploads_jars_only_to_a_cluster_without_them(
    start, flink_jars, cluster, tmp_path, cluster_has_jars
):
    jars = flink_jars
    if not cluster_has_jars:
        jars = tmp_path / "jars"
        jars.mkdir()
        for jar in flink_jars.glob("*.jar"):
            (jars / jar.name.replace("runners-flink-", "runners-flink-9.")).symlink_to(jar)
    before = blobs(cluster)
    assert run(start("count", jars=str(jars), **on(cluster))) == ("done", 0)
    assert (blobs(cluster) == before) == cluster_has_jars


@pytest.fixture
def job_server(flink_jars, cluster, tmp_path):
    """Return a job server for the cluster, and the settings of a job that uses it."""
    server = JobServer(str(flink_jars), cluster.address, 1, str(tmp_path / "server"))
    log = server.log.read_text()
    [port] = re.findall(r"ArtifactStagingService started on \S+:(\d+)", log)
    artifacts = [f"--artifact_endpoint=localhost:{port}"]
    yield server, {"args": artifacts, "job_endpoint": server.endpoint, **on(cluster)}
    guard.stop(server.process)


@pytest.mark.exhaustive
def test_a_job_server_that_runs_already_and_its_loss(start, cluster, job_server, tmp_path):
    server, flink = job_server
    check_local(settings(tmp_path, **flink))
    start("endless", **flink).kill()
    assert last_state(cluster) == "CANCELED"
    (tmp_path / "working").unlink()
    job = start("endless", **flink)
    guard.stop(server.process)
    assert run(job)[0] == (
        "FlinkError: the Flink job server ended before the job; see the logs of the "
        f"TaskManagers of {cluster.address}"
    )
    assert last_state(cluster) == "CANCELED"


def is_forked(process):
    return "forkserver" in process.cmdline()[-1] and "forkserver" in process.parent().cmdline()[-1]


@pytest.mark.parametrize("victim", ["worker", exhaustive("fork server"), exhaustive("TaskManager")])
def test_a_job_continues_after_the_loss_of_its_worker(start, cluster, tmp_path, victim):
    job = start("endless once", **on(cluster))
    if victim == "TaskManager":
        for process in below(cluster.task_managers[-1]):
            process.kill()
        cluster.add_task_manager()
    else:
        workers = [each for each in below(cluster.worker_pools[-1]) if is_forked(each)]
        for process in [workers[0].parent()] * (victim == "fork server") + workers:
            process.kill()
    assert run(job) == ("done", 0)
    assert [(tmp_path / name).read_text() for name in ("a", "b")] == ["2", "1"]


def test_a_job_without_progress_ends_after_the_timeout(start, tmp_path):
    line, code = run(start("endless", timeout_seconds=15))
    assert line.startswith(
        "FlinkError: the Flink job made no progress for 15 s (beam.flink.timeout_seconds)"
    )
    assert f"; see {tmp_path}/logs/flink-job-" in line
    assert code == 1


def test_the_error_of_a_pool_ends_the_job_before_the_timeout(start):
    answer = beam_fn_api_pb2.StartWorkerResponse(error="the Python worker ended with exit code 3")
    broken = Mock(StartWorker=Mock(return_value=answer))
    address, server = worker_pool.serve(broken, "localhost:0")
    args = ["--environment_type=EXTERNAL", f"--environment_config={address}"]
    line, _ = run(start("count", args, timeout_seconds=600))
    server.stop(None)
    assert line.startswith("FlinkError: the Flink job failed: ")
    assert "the Python worker ended with exit code 3; see " in line
