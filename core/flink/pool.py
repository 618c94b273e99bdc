"""A worker pool of Beam that listens on one address: `python -m core.flink.pool HOST:PORT`.

Each worker is a process. Beam's own pool (`apache_beam.runners.worker.worker_pool_main`) accepts
connections on every network interface, and executes the code that they contain. Nor does it notice
that a worker does not start: Flink would wait for the worker until the timeout of the job.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import connection
from pathlib import Path

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.runners.worker.worker_pool_main import (
    BeamFnExternalWorkerPoolServicer,
    kill_process_gracefully,
)
from apache_beam.utils import thread_pool_executor

from core.flink.names import WORKER, WORKER_IS_READY

_SECONDS_TO_START = 300.0
"""The imports of a worker take ten CPU seconds, on a machine that may have other work."""
_SECONDS_TO_END = 1.0
_BYTES = 1 << 12


class WorkerPool(BeamFnExternalWorkerPoolServicer):
    """Starts workers; the error of a worker that does not become ready is the answer to Flink."""

    def __init__(self, command: str):
        """Start no worker yet.

        Args:
          command: the command that starts a worker. The worker writes `WORKER_IS_READY` to its
            standard output before it connects to Flink.
        """
        super().__init__(use_process=True, container_executable=command)

    def StartWorker(
        self, start_worker_request: beam_fn_api_pb2.StartWorkerRequest, unused_context: object
    ) -> beam_fn_api_pb2.StartWorkerResponse:
        """See BeamFnExternalWorkerPoolServicer. The arguments are those of a container of Beam."""
        request = start_worker_request
        arguments = {
            "id": request.worker_id,
            "logging_endpoint": request.logging_endpoint.url,
            "artifact_endpoint": request.artifact_endpoint.url,
            "provision_endpoint": request.provision_endpoint.url,
            "control_endpoint": request.control_endpoint.url,
        }
        command = [self._container_executable, *(f"--{k}={v}" for k, v in arguments.items())]
        try:
            worker = _Worker(command)
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(error=f"no worker can be started: {error}")
        self._worker_processes[request.worker_id] = worker.process
        problem = worker.problem(_SECONDS_TO_START)
        if problem:
            self._worker_processes.pop(request.worker_id, None)
        return beam_fn_api_pb2.StartWorkerResponse(error=problem)


class _Worker:
    """The process of a worker; its standard error is copied to that of this process."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._last_line = ""
        self._copying = threading.Thread(target=self._copy_errors, daemon=True)
        self._copying.start()

    def problem(self, seconds: float) -> str:
        """Wait until the worker is ready; return why it is not, in one line, or an empty string."""
        try:
            ready = self._is_ready(seconds)
        except TimeoutError:
            kill_process_gracefully(self.process)
            return self._error(f"did not start within {seconds:g} s")
        if not ready:
            try:
                # The end of the output precedes the end of the process.
                code = self.process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                return ""  # The command writes its output to another place.
            return self._error(f"ended with exit code {code}")
        return ""

    def _is_ready(self, seconds: float) -> bool:
        """Wait for the report of the worker; return whether it came before the end of the output.

        Raises:
          TimeoutError: neither of them came in time.
        """
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        output = b""
        with self.process.stdout as stdout:
            while connection.wait([stdout.fileno()], max(0.0, deadline - time.monotonic())):
                received = os.read(stdout.fileno(), _BYTES)
                output += received
                if not received or WORKER_IS_READY in output:
                    return bool(received)
        raise TimeoutError

    def _error(self, what: str) -> str:
        # A process that the worker started may have its standard error open.
        self._copying.join(_SECONDS_TO_END)
        return f"the Python worker {what}: {self._last_line or 'it wrote no error'}"

    def _copy_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            sys.stderr.buffer.write(line)
            sys.stderr.flush()
            self._last_line = line.decode(errors="replace").strip() or self._last_line


def serve(pool: BeamFnExternalWorkerPoolServicer, address: str) -> tuple[str, grpc.Server]:
    """Start a server; return its address and the server, which the caller stops.

    Args:
      pool: starts the workers.
      address: `HOST:PORT`; port 0 is any free port.

    Raises:
      RuntimeError: the address cannot be used.
    """
    # Otherwise a second pool could listen at the same port, and would get a part of the requests.
    server = grpc.server(
        thread_pool_executor.shared_unbounded_instance(), options=[("grpc.so_reuseport", 0)]
    )
    host, _, _ = address.rpartition(":")
    port = server.add_insecure_port(address)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    server.start()
    return f"{host}:{port}", server


def main() -> None:
    """Serve until SIGTERM or Ctrl-C, and end all workers."""
    parser = argparse.ArgumentParser(description="Run a worker pool of Beam.")
    parser.add_argument("address", metavar="HOST:PORT")
    parser.add_argument(
        "--worker",
        default=str(Path(sys.executable).with_name(WORKER)),
        metavar="COMMAND",
        help=f"command that starts a worker [{WORKER} of this installation]",
    )
    arguments = parser.parse_args()
    pool = WorkerPool(arguments.worker)
    try:
        address, server = serve(pool, arguments.address)
    except RuntimeError as error:
        sys.exit(f"the worker pool cannot listen at {arguments.address}: {error}")
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    print(f"worker pool at {address}", flush=True)
    ended.wait()
    server.stop(None).wait()
    for worker in list(pool._worker_processes.values()):
        kill_process_gracefully(worker)


if __name__ == "__main__":
    main()
