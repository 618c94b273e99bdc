"""The worker pool: when a worker counts as started, the error of one that does not, and its end."""

import subprocess
from concurrent.futures import ThreadPoolExecutor

import grpc
import psutil
import pytest
from apache_beam.portability.api import (
    beam_fn_api_pb2,
    beam_fn_api_pb2_grpc,
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
)

from core import processes
from platforms.flink import worker_pool
from tests.waiting import alive, wait


class Provision(beam_provision_api_pb2_grpc.ProvisionServiceServicer):
    """The provision service of a TaskManager that does not exist."""

    def GetProvisionInfo(self, request, context):
        [worker] = [value for key, value in context.invocation_metadata() if key == "worker_id"]
        if worker == "bad":
            context.abort(grpc.StatusCode.INTERNAL, "no such worker")
        info = beam_provision_api_pb2.ProvisionInfo()
        info.control_endpoint.url = info.logging_endpoint.url = "localhost:1"
        return beam_provision_api_pb2.GetProvisionInfoResponse(info=info)


@pytest.fixture(scope="module")
def provision():
    server = grpc.server(ThreadPoolExecutor())
    beam_provision_api_pb2_grpc.add_ProvisionServiceServicer_to_server(Provision(), server)
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}"
    server.stop(None)


def request(worker_id, url):
    found = beam_fn_api_pb2.StartWorkerRequest(worker_id=worker_id)
    found.provision_endpoint.url = url
    return found


def below(pool):
    return psutil.Process(pool.pid).children(recursive=True)


def has_imported_tensorflow(process):
    return any("libtensorflow" in mapped.path for mapped in process.memory_maps())


@pytest.mark.slow
def test_workers_start_stop_and_end_with_a_killed_pool(provision, tmp_path):
    # A module of the user, which the fork server does not import.
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('of the user')")
    command = processes.command("platforms.flink.worker_pool", "localhost:0")
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as pool:
        address = pool.stdout.readline().removeprefix("worker pool at ").strip()
        assert any(has_imported_tensorflow(each) for each in below(pool))
        stub = beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolStub(grpc.insecure_channel(address))
        problem = stub.StartWorker(request("bad", provision)).error
        assert (
            problem.startswith("the Python worker did not start: ") and "no such worker" in problem
        )
        for worker_id in ("1-1", "1-2"):
            assert stub.StartWorker(request(worker_id, provision)).error == ""
        processes_of_pool = below(pool)
        [server] = [each for each in processes_of_pool if each.children()]
        first, second = server.children()
        stub.StopWorker(beam_fn_api_pb2.StopWorkerRequest(worker_id="1-1"))
        wait(lambda: not alive(first))
        assert alive(second)
        pool.kill()
    wait(lambda: not any(alive(each) for each in processes_of_pool))


def test_a_pool_whose_address_is_used_ends_with_one_line(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    address, server = worker_pool.serve(worker_pool.WorkerPool(), "127.0.0.1:0")
    monkeypatch.setattr("sys.argv", ["worker_pool", address])
    with pytest.raises(SystemExit, match=f"the worker pool cannot listen at {address}: "):
        worker_pool.main()
    server.stop(None)
