"""Beam's Python workers: processes of a pool next to a TaskManager, or threads of this process.

`python -m platforms.flink.worker_pool HOST:PORT` is the pool. Beam's own pool
(`apache_beam.runners.worker.worker_pool_main`) accepts connections on every network interface, and
executes the code that it receives. It does not report a worker that fails to start, so Flink waits
for the worker until the timeout of the job.

The imports of a worker take about ten CPU seconds, and each job starts new workers. So the fork
server of the standard library imports the libraries once, and forks the workers.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
import threading
from multiprocessing import connection, get_context, parent_process
from multiprocessing.context import ForkServerProcess

import grpc
from apache_beam.options.pipeline_options import DebugOptions, PipelineOptions
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.runners.worker import sdk_worker_main, worker_pool_main
from apache_beam.utils import thread_pool_executor

from core import processes
from platforms.flink import POOL_READY

LIBRARIES = [
    "apache_beam.runners.worker.sdk_worker_main",
    "tensorflow",
    "tensorflow_data_validation",
    "tensorflow_transform.beam",
    "tensorflow_model_analysis",
    "tfx.components",
]
"""The modules that the fork server imports. Each worker imports our own packages itself, because
the files of a checkout may change."""
_SECONDS_TO_START = 300.0
_SECONDS_TO_END = 5.0
_SECONDS_TO_ANSWER = 60


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """The service that starts workers for Flink.

    If a worker does not become ready, the response to Flink contains the error.
    """

    def __init__(self) -> None:
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(LIBRARIES)
        self._workers: dict[str, ForkServerProcess] = {}

    def import_libraries(self) -> None:
        """Start the fork server, and return when it has imported the libraries."""
        # The fork server answers its first request after the imports. A process without a target
        # ends at once.
        process = self._context.Process()
        process.start()
        process.join()

    def StartWorker(
        self, start_worker_request: beam_fn_api_pb2.StartWorkerRequest, unused_context: object
    ) -> beam_fn_api_pb2.StartWorkerResponse:
        """Start a worker, and return when it has imported its libraries or has failed.

        Returns:
          A response with the error of the worker; the error is empty if the worker is ready.
        """
        worker_id = start_worker_request.worker_id
        url = start_worker_request.provision_endpoint.url
        received, sent = self._context.Pipe(duplex=False)
        # A daemon, so that it ends with the pool.
        worker = self._context.Process(target=_work, args=(worker_id, url, sent), daemon=True)
        with sent:
            worker.start()
        self._workers[worker_id] = worker
        problem = _problem(worker, received)
        if problem:
            self._end(worker_id)
        return beam_fn_api_pb2.StartWorkerResponse(error=problem)

    def StopWorker(
        self, stop_worker_request: beam_fn_api_pb2.StopWorkerRequest, unused_context: object
    ) -> beam_fn_api_pb2.StopWorkerResponse:
        self._end(stop_worker_request.worker_id)
        return beam_fn_api_pb2.StopWorkerResponse()

    def _end(self, worker_id: str) -> None:
        worker = self._workers.pop(worker_id, None)
        if worker:
            worker.kill()
            worker.join()


def _problem(worker: ForkServerProcess, received: connection.Connection) -> str:
    """Wait until a worker is ready; return its error in one line, or an empty string."""
    with received:
        if not received.poll(_SECONDS_TO_START):
            return f"the Python worker did not start within {_SECONDS_TO_START:g} s"
        try:
            return str(received.recv())
        except (EOFError, OSError):
            worker.join(_SECONDS_TO_END)
            return f"the Python worker ended with exit code {worker.exitcode}"


def _work(worker_id: str, url: str, ready: connection.Connection) -> None:
    """Run a worker until its TaskManager closes the connection.

    Args:
      worker_id: the id of the worker, which Flink has chosen.
      url: `HOST:PORT` of Beam's provision service.
      ready: receives an empty text when the libraries are imported, or the error in one line.
    """
    threading.Thread(target=_end_with_pool, daemon=True).start()
    # A garbage collection would write to the memory pages of the imported objects. The processes
    # would then no longer share these pages.
    gc.freeze()
    try:
        import numpy as np

        # The forked workers would otherwise draw the same random numbers.
        np.random.seed()
        os.environ.update(_provision(url, worker_id), WORKER_ID=worker_id)
    except Exception as error:
        ready.send(f"the Python worker did not start: {type(error).__name__}: {error}")
        raise
    ready.send("")
    ready.close()
    sdk_worker_main.main(sys.argv)


def _end_with_pool() -> None:
    """End this process with the pool; its parent is the fork server, which may end earlier."""
    pool = parent_process()
    assert pool is not None
    connection.wait([pool.sentinel])
    os._exit(1)


def _provision(url: str, worker_id: str) -> dict[str, str]:
    """Return the environment variables that Beam's worker reads, from the provision service."""
    from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
    from google.protobuf import json_format

    with grpc.insecure_channel(url) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        info = stub.GetProvisionInfo(
            beam_provision_api_pb2.GetProvisionInfoRequest(),
            metadata=[("worker_id", worker_id)],
            wait_for_ready=True,
            timeout=_SECONDS_TO_ANSWER,
        ).info
    return {
        "CONTROL_API_SERVICE_DESCRIPTOR": f'url: "{info.control_endpoint.url}"',
        "LOGGING_API_SERVICE_DESCRIPTOR": f'url: "{info.logging_endpoint.url}"',
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }


def start_threads(options: PipelineOptions) -> tuple[str, grpc.Server]:
    """Start a pool whose workers are threads of this process.

    Beam starts such a pool for `--environment_type=LOOPBACK`, but with a server that accepts
    connections on every network interface.

    Args:
      options: the options of the pipeline.

    Returns:
      `HOST:PORT` of the pool, and its server.

    Raises:
      RuntimeError: the server cannot listen.
    """
    experiments = options.view_as(DebugOptions).experiments or []
    pool = worker_pool_main.BeamFnExternalWorkerPoolServicer(
        state_cache_size=sdk_worker_main._get_state_cache_size_bytes(options=options),
        data_buffer_time_limit_ms=sdk_worker_main._get_data_buffer_time_limit_ms(experiments),
    )
    return serve(pool, "localhost:0")


def serve(
    pool: beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer, address: str
) -> tuple[str, grpc.Server]:
    """Start the server of a pool.

    Args:
      pool: the service that answers the requests.
      address: `HOST:PORT` at which the server listens; port 0 selects a free port.

    Returns:
      `HOST:PORT` with the actual port, and the server.

    Raises:
      RuntimeError: the server cannot listen at this address.
    """
    # By default a second pool could listen at the same port, and would receive some requests.
    server = grpc.server(
        thread_pool_executor.shared_unbounded_instance(), options=[("grpc.so_reuseport", 0)]
    )
    host, _, _ = address.rpartition(":")
    port = server.add_insecure_port(address)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    server.start()
    return f"{host}:{port}", server


def main() -> None:
    """Serve until SIGTERM or Ctrl-C, and then end all workers.

    The line with the address is printed when a worker can start without the imports. A request that
    arrives earlier waits for them.

    Raises:
      SystemExit: an argument is wrong, or the pool cannot listen. The message is on standard error.
    """
    parser = argparse.ArgumentParser(description="Run a worker pool of Beam.")
    parser.add_argument("address", metavar="HOST:PORT")
    arguments = parser.parse_args()
    processes.set_environment()
    # The fork server imports from its working directory first.
    os.chdir("/")
    try:
        pool = WorkerPool()
        address, server = serve(pool, arguments.address)
    except RuntimeError as error:
        sys.exit(f"the worker pool cannot listen at {arguments.address}: {error}")
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    pool.import_libraries()
    print(f"{POOL_READY}{address}", flush=True)
    ended.wait()
    server.stop(None).wait()


if __name__ == "__main__":
    main()
