"""The worker pool: when a worker counts as started, and the error of one that does not start."""

import psutil
import pytest
from apache_beam.portability.api import beam_fn_api_pb2

from core.flink import pool
from core.flink.names import WORKER_IS_READY

READY = WORKER_IS_READY.decode().strip()


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a worker with a script; it returns the error and the worker."""
    started = []

    def function(script):
        command = tmp_path / "worker"
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
        workers = pool.WorkerPool(str(command))
        request = beam_fn_api_pb2.StartWorkerRequest(worker_id="1-1")
        answer = workers.StartWorker(request, None)
        started.extend(workers._worker_processes.values())
        return answer.error, workers

    yield function
    for process in started:
        process.kill()
        process.wait()


def test_a_worker_that_is_ready_has_started_and_can_be_stopped(start):
    error, workers = start(f"echo loading; echo {READY}; exec sleep 600")
    assert error == ""
    [process] = workers._worker_processes.values()
    assert process.poll() is None
    workers.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id="1-1"), None)
    assert process.poll() is not None


def test_the_last_line_of_a_worker_that_ends_is_the_error(start, capfd):
    error, workers = start("echo loading; echo first >&2; echo no such library >&2; exit 3")
    assert error == "the Python worker ended with exit code 3: no such library"
    assert workers._worker_processes == {}
    assert capfd.readouterr().err == "first\nno such library\n"


def test_a_worker_that_ends_without_a_word(start):
    assert start("exit 1")[0] == "the Python worker ended with exit code 1: it wrote no error"


def test_a_worker_that_does_not_become_ready_is_ended(start, monkeypatch):
    monkeypatch.setattr(pool, "_SECONDS_TO_START", 0.5)
    error, workers = start("echo still loading >&2; exec sleep 600")
    assert error == "the Python worker did not start within 0.5 s: still loading"
    assert workers._worker_processes == {}
    children = [each.cmdline() for each in psutil.Process().children()]
    assert ["sleep", "600"] not in children


def test_a_command_that_redirects_the_output_of_its_worker_is_no_error(start, monkeypatch):
    monkeypatch.setattr(pool, "_SECONDS_TO_END", 0.2)
    assert start("exec >/dev/null; exec sleep 600")[0] == ""


def test_a_worker_that_cannot_be_started():
    request = beam_fn_api_pb2.StartWorkerRequest()
    answer = pool.WorkerPool("/no/such/worker").StartWorker(request, None)
    assert answer.error.startswith("no worker can be started: ")
    assert "/no/such/worker" in answer.error


def test_a_pool_whose_address_is_used_ends_with_one_line(capsys, monkeypatch):
    address, server = pool.serve(pool.WorkerPool("/bin/false"), "127.0.0.1:0")
    monkeypatch.setattr("sys.argv", ["pool", address])
    with pytest.raises(SystemExit, match=f"the worker pool cannot listen at {address}: "):
        pool.main()
    server.stop(None)
