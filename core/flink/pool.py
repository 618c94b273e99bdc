"""A worker pool of Beam that listens on one address: `python -m core.flink.pool HOST:PORT`.

Each worker is a process. Beam's own pool (`apache_beam.runners.worker.worker_pool_main`) accepts
connections on every network interface, and executes the code that they contain.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from pathlib import Path

import grpc
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.worker.worker_pool_main import (
    BeamFnExternalWorkerPoolServicer,
    kill_process_gracefully,
)
from apache_beam.utils import thread_pool_executor

from core.flink.names import WORKER


def serve(pool: BeamFnExternalWorkerPoolServicer, address: str) -> tuple[str, grpc.Server]:
    """Start a server; return its address and the server, which the caller stops.

    Args:
      pool: starts the workers.
      address: `HOST:PORT`; port 0 is any free port.

    Raises:
      RuntimeError: the address cannot be used.
    """
    server = grpc.server(thread_pool_executor.shared_unbounded_instance())
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
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    pool = BeamFnExternalWorkerPoolServicer(use_process=True, container_executable=arguments.worker)
    try:
        address, server = serve(pool, arguments.address)
    except RuntimeError as error:
        sys.exit(f"the worker pool cannot listen at {arguments.address}: {error}")
    print(f"worker pool at {address}", flush=True)
    ended.wait()
    server.stop(None).wait()
    for worker in pool._worker_processes.values():
        kill_process_gracefully(worker)


if __name__ == "__main__":
    main()
