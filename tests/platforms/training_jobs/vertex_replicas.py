"""The replicas of CustomJobs for tests: processes of this machine."""

import contextlib
import itertools
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from pathlib import Path

from google.cloud.aiplatform_v1.types import JobState

from tests.checkout import CHECKOUT

TYPES = ("chief", "worker", "ps")


class Replicas:
    """Runs the containers of each CustomJob with the TF_CONFIG that Vertex AI gives them.

    Attributes:
      codes: name of a replica -> its exit code, once it has ended by itself.
      output: the output of all replicas.
      server: the VertexServer of the CustomJobs.
    """

    def __init__(self, server):
        self.codes = {}
        self.output = ""
        self.server = server
        self._processes = []
        server.on_create = self._run

    def close(self):
        for process in self._processes:
            process.kill()

    def _run(self, job):
        pools = [(TYPES[i], pool) for i, pool in enumerate(job.job_spec.worker_pool_specs)]
        ports = iter(free_ports(sum(pool.replica_count for _, pool in pools)))
        cluster = {
            kind: [f"127.0.0.1:{next(ports)}" for _ in range(pool.replica_count)]
            for kind, pool in pools
        }
        job.state = JobState.JOB_STATE_RUNNING
        for kind, pool in pools:
            for index in range(pool.replica_count):
                config = {
                    "cluster": cluster,
                    "task": {"type": kind, "index": index},
                    "environment": "cloud",
                }
                self._start(job, f"{kind}-{index}", pool.container_spec.command, config)

    def _start(self, job, name, command, config):
        process = subprocess.Popen(
            [sys.executable if command[0] == "python" else command[0], *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(CHECKOUT),
                "CUDA_VISIBLE_DEVICES": "",
                "no_grpc_proxy": "127.0.0.1",
                "TF_CONFIG": json.dumps(config),
            },
        )
        self._processes.append(process)
        threading.Thread(target=self._wait, args=[job, name, process], daemon=True).start()

    def _wait(self, job, name, process):
        output, _ = process.communicate()
        self.output += output
        code = self.codes[name] = process.returncode
        if job.state != JobState.JOB_STATE_RUNNING:
            return
        if code:
            message = f"The replica {name} exited with a non-zero status of {code}. See the log."
            self.server.end_job(job, JobState.JOB_STATE_FAILED, message)
        elif name == "chief-0":
            self.server.end_job(job, JobState.JOB_STATE_SUCCEEDED)


def _numbers():
    """Yield the ports that this process may choose, again and again.

    A server listens only seconds after the choice of its port, and again after a restart. The
    kernel gives the ports of its own range to any process, so these are below that range. Each
    worker of pytest has others, and begins at random for another run of pytest on this machine.
    """
    first_of_kernel = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    numbers = range(10_000 + worker, first_of_kernel, workers)
    if not numbers:
        return itertools.repeat(0)  # any port
    start = secrets.randbelow(len(numbers))
    return itertools.cycle([*numbers[start:], *numbers[:start]])


_NUMBERS = _numbers()


def free_ports(count):
    """Return different ports on which no process listens."""
    with contextlib.ExitStack() as held:
        sockets = []
        while len(sockets) < count:
            with contextlib.suppress(OSError):
                sockets.append(held.enter_context(socket.create_server(("", next(_NUMBERS)))))
        return [each.getsockname()[1] for each in sockets]
