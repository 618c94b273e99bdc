"""`amazon-reviews-beam-worker`: a Python worker of Beam in a process of its own.

A TaskManager starts it with `--environment_type=PROCESS`, a worker pool with
`--container_executable`. The arguments are those of Beam's container contract. Beam's own worker
process is `python` from PATH, which is not always the Python of this package.

The worker itself is a process that `fork_server` forks. This module imports nothing large.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from core import processes
from core.flink import fork_server
from core.flink.names import WORKER_IS_READY, WORKER_LOG_VARIABLE

_SECONDS = 60


def main() -> None:
    """Run the worker until the TaskManager closes the connection."""
    parser = argparse.ArgumentParser(description="Run a Python worker of Beam.")
    parser.add_argument("--id", required=True)
    parser.add_argument("--provision_endpoint", required=True, metavar="HOST:PORT")
    # A worker pool gives further endpoints, which the provision service returns too.
    arguments, _ = parser.parse_known_args()
    processes.ignore_other_jobs()
    _write_log()
    words = [arguments.id, arguments.provision_endpoint]
    code = fork_server.run(_work, words)
    if code is None:
        _work(words)
    sys.exit(code)


def _work(words: list[str]) -> None:
    worker, endpoint = words
    os.environ["WORKER_ID"] = worker
    os.environ.update(_provision(endpoint, worker))

    from apache_beam.runners.worker import sdk_worker_main

    _report_ready()
    sdk_worker_main.main(sys.argv)


def _report_ready() -> None:
    """Report to the worker pool, and end the output to it: a full pipe would block the worker."""
    with contextlib.suppress(OSError):
        os.write(1, WORKER_IS_READY)
    os.dup2(2, 1)


def _write_log() -> None:
    """Append errors to the file that the run named, because a TaskManager discards them."""
    log = os.environ.get(WORKER_LOG_VARIABLE)
    if log:
        os.makedirs(os.path.dirname(log), exist_ok=True)
        sink = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(sink, 2)


def _provision(url: str, worker: str) -> dict[str, str]:
    """Return the environment variables that Beam's worker reads, from the provision service."""
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
    from google.protobuf import json_format

    with grpc.insecure_channel(url) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        info = stub.GetProvisionInfo(
            beam_provision_api_pb2.GetProvisionInfoRequest(),
            metadata=[("worker_id", worker)],
            wait_for_ready=True,
            timeout=_SECONDS,
        ).info
    return {
        "CONTROL_API_SERVICE_DESCRIPTOR": f'url: "{info.control_endpoint.url}"',
        "LOGGING_API_SERVICE_DESCRIPTOR": f'url: "{info.logging_endpoint.url}"',
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }


if __name__ == "__main__":
    main()
