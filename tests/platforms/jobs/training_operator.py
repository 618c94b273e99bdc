"""A test double of Kubeflow's training operator (v1.9), which runs pods as local processes."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.platforms.jobs.kubernetes_http import now

REPOSITORY = str(Path(__file__).parents[3])
SECONDS_TO_END = 2
NO_EXIT_CODE = 0xBEEF
"""The operator's exit code of a pod that ended without one, such as an evicted pod."""
FIRST_WAIT, LONGEST_WAIT = 0.05, 1000
"""Seconds before the first and before the last retry to create a refused pod."""


class Refused(Exception):
    """A pod that the API server refused."""


class Operator:
    """Runs the containers of each TFJob's pods as processes.

    A process gets the TF_CONFIG of a pod, with ports of this machine instead of service names.

    Attributes:
      processes: name of a pod -> its process, the latest.
      restarts: the number of restarts of all pods.
    """

    def __init__(self, server):
        self.processes = {}
        self.restarts = 0
        self._server = server
        # The TFJob is deleted after its pods.
        server.on_delete = lambda job: None
        self._ended = threading.Event()
        self._addresses = {}
        self._waits = {}
        self._ticker = threading.Thread(target=self._reconcile_for_ever, daemon=True)
        self._ticker.start()

    def close(self):
        self._ended.set()
        self._ticker.join()
        for process in self.processes.values():
            process.kill()
            process.wait()

    @property
    def running(self):
        # Copied in one step, because the operator's thread changes it.
        processes = list(self.processes.items())
        return [name for name, each in processes if each.poll() is None]

    def _reconcile_for_ever(self):
        while not self._ended.wait(0.05):
            with self._server.lock:
                for job in list(self._server.tfjobs.values()):
                    self._reconcile(job)

    def _reconcile(self, job):
        name = job["metadata"]["name"]
        for pod in self._pods(name):
            self._take_exit_code(pod)
        if "deletionTimestamp" in job["metadata"]:
            self._terminate(self._pods(name))
            if not self._pods(name):
                del self._server.tfjobs[name]
            return
        conditions = job.get("status", {}).get("conditions", [])
        if any(each["type"] in ("Succeeded", "Failed") for each in conditions):
            # cleanPodPolicy: Running
            assert job["spec"]["runPolicy"]["cleanPodPolicy"] == "Running"
            self._terminate([p for p in self._pods(name) if p["status"]["phase"] == "Running"])
            return
        uid = job["metadata"]["uid"]
        wait, again_at = self._waits.get(uid, (FIRST_WAIT, 0.0))
        if time.monotonic() < again_at:
            return
        try:
            news = self._reconcile_pods(job)
        except Refused:
            # The operator writes no status if it failed to create a missing pod.
            self._waits[uid] = min(2 * wait, LONGEST_WAIT), time.monotonic() + wait
            return
        if not conditions:
            self._server.set_condition(name, "Created", f"TFJob {name} is created.")
        for kind, message in news:
            self._server.set_condition(name, kind, message)

    def _reconcile_pods(self, job):
        """Create the missing pods; return the resulting conditions with their messages."""
        name, specs = job["metadata"]["name"], job["spec"]["tfReplicaSpecs"]
        news = []
        for kind, spec in specs.items():
            for index in range(spec["replicas"]):
                news += self._reconcile_pod(job, kind, index)
        phases = {
            (
                p["metadata"]["labels"]["training.kubeflow.org/replica-type"],
                p["metadata"]["name"],
            ): p["status"]["phase"]
            for p in self._pods(name)
        }
        chief = ("chief", f"{name}-chief-0") if "Chief" in specs else ("worker", f"{name}-worker-0")
        if phases.get(chief) == "Succeeded":
            message = f"TFJob {job['metadata']['namespace']}/{name} successfully completed."
            news.append(("Succeeded", message))
        elif phases.get(chief) == "Running":
            message = f"TFJob {job['metadata']['namespace']}/{name} is running."
            news.append(("Running", message))
        return news

    def _reconcile_pod(self, job, kind, index):
        name = job["metadata"]["name"]
        pod_name = f"{name}-{kind.lower()}-{index}"
        pod = self._server.pods.get(pod_name)
        if pod is None:
            self._run(job, kind, index)
        elif pod["status"]["phase"] == "Failed":
            containers = pod["status"].get("containerStatuses", [])
            codes = [each["state"]["terminated"]["exitCode"] for each in containers]
            if (codes or [NO_EXIT_CODE])[0] >= 128:
                self.restarts += 1
                self._server.remove_pod(pod_name)
                return [
                    ("Restarting", f"job {name} is restarting because {kind} replica(s) failed.")
                ]
            return [("Failed", f'job "{name}" is failing because "{kind}" replica(s) failed.')]
        return []

    def _pods(self, job_name):
        label = "training.kubeflow.org/job-name"
        pods = list(self._server.pods.values())
        return [pod for pod in pods if pod["metadata"]["labels"][label] == job_name]

    def _take_exit_code(self, pod):
        name = pod["metadata"]["name"]
        process = self.processes[name]
        # The thread that reads the pipe closes it at the end.
        if process.stdout.closed:
            code = process.wait()
            if pod["status"]["phase"] == "Running":
                self._server.end_pod(pod, 128 - code if code < 0 else code)
            if "deletionTimestamp" in pod["metadata"]:
                self._server.remove_pod(name)

    def _terminate(self, pods):
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                pod["metadata"]["deletionTimestamp"] = now()
                process = self.processes[pod["metadata"]["name"]]
                process.terminate()
                # Shorter than terminationGracePeriodSeconds, to save time in tests: TensorFlow does
                # not exit after SIGTERM while it connects to its peers.
                killer = threading.Timer(SECONDS_TO_END, process.kill)
                killer.daemon = True
                killer.start()

    def _run(self, job, kind, index):
        spec = job["spec"]["tfReplicaSpecs"][kind]["template"]["spec"]
        name = f"{job['metadata']['name']}-{kind.lower()}-{index}"
        why = self._server.admission(name, spec)
        if why:
            message = f'Error creating: pods "{name}" is forbidden: {why}'
            self._server.warn(job, "FailedCreatePod", message)
            raise Refused
        pod = self._server.add_pod(job, kind.lower(), index)
        [container] = spec["containers"]
        assert container["name"] == "tensorflow"
        command = [*container["command"], *container.get("args", [])]
        given = {each["name"]: each["value"] for each in container.get("env", [])}
        environ = {
            **os.environ,
            "PYTHONPATH": REPOSITORY,
            "CUDA_VISIBLE_DEVICES": "",
            # gRPC would also use a proxy for connections to this machine.
            "no_grpc_proxy": "127.0.0.1",
            **given,
        }
        environ.pop("TF_CONFIG", None)
        config = self._tf_config(job, kind, index)
        if config:
            environ["TF_CONFIG"] = config
        process = subprocess.Popen(
            [sys.executable if command[0] == "python" else command[0], *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            start_new_session=True,
        )
        self.processes[pod["metadata"]["name"]] = process
        self._server.start_pod(pod)
        log = self._server.log_of(pod)
        threading.Thread(target=self._read, args=[process, log], daemon=True).start()

    def _read(self, process, log):
        with process.stdout as lines:
            for line in lines:
                log.write(line.decode(errors="replace").rstrip("\n"))

    def _tf_config(self, job, kind, index):
        """Return TF_CONFIG as the operator sets it; None for a single replica."""
        counts = {
            each.lower(): spec["replicas"] for each, spec in job["spec"]["tfReplicaSpecs"].items()
        }
        if sum(counts.values()) == 1:
            return None
        key = job["metadata"]["uid"]
        if key not in self._addresses:
            ports = iter(free_ports(sum(counts.values())))
            self._addresses[key] = {
                each: [f"127.0.0.1:{next(ports)}" for _ in range(count)]
                for each, count in counts.items()
            }
        task = {"type": kind.lower(), "index": index}
        return json.dumps({"cluster": self._addresses[key], "task": task, "environment": "cloud"})


def free_ports(count):
    sockets = [socket.create_server(("", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
