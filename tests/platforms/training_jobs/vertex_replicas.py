"""The replicas of CustomJobs for tests: processes of this machine."""

import json
import os
import subprocess
import sys
import threading

from google.cloud.aiplatform_v1.types import JobState

from tests.checkout import CHECKOUT
from trainer_module.cluster.resources import allocate

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
        cluster = allocate({kind: pool.replica_count for kind, pool in pools})[0].task.spec
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
