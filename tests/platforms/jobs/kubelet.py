"""A test double of Kubernetes's nodes, which runs the containers of pods as local processes."""

import contextlib
import itertools
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

from tests.platforms.jobs.kubernetes_http import now

REPOSITORY = str(Path(__file__).parents[3])
SECONDS_TO_END = 2
REFERENCE = re.compile(r"\$\((\w+)\)")
HOST = re.compile(r"([a-z0-9-]+\.[a-z0-9-]+):2222")


class Kubelet:
    """Starts and ends the processes of pods.

    Attributes:
      processes: name of a pod -> its process, the latest.
      restarts: the number of restarts of all pods.
    """

    def __init__(self, server):
        self.server = server
        self.processes = {}
        self.restarts = 0
        self._ports = {}

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    @property
    def running(self):
        # Copied in one step, because the thread of the controllers changes it.
        processes = list(self.processes.items())
        return [name for name, each in processes if each.poll() is None]

    def process_of(self, job, replica):
        """Return the process of a replica, such as `worker 1`."""
        return self.processes[self._pod_of(job, replica)["metadata"]["name"]]

    def _pod_of(self, job, replica):
        kind = self.server.kinds[job["kind"]]
        pods = [pod for pod in self.pods(job) if pod["status"]["phase"] == "Running"]
        [pod] = [pod for pod in pods if kind.replica_of(pod, job) == replica]
        return pod

    def pods(self, job):
        return self.server.pods_of(job)

    def start(self, pod, spec, environ, hosts=()):
        """Run the container of a pod.

        Args:
          pod: the pod.
          spec: its spec, with one container.
          environ: variables that a controller sets.
          hosts: the host names that the cluster's DNS knows; each is a port of this machine.
        """
        [container] = spec["containers"]
        command = [*container["command"], *container.get("args", [])]
        process = subprocess.Popen(
            [sys.executable if command[0] == "python" else command[0], *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environ(pod, container, environ, hosts),
            start_new_session=True,
        )
        self.processes[pod["metadata"]["name"]] = process
        self.server.start_pod(pod, container["name"])
        log = self.server.log_of(pod)
        threading.Thread(target=_read, args=[process, log], daemon=True).start()

    def _environ(self, pod, container, environ, hosts):
        given = {
            **os.environ,
            "PYTHONPATH": REPOSITORY,
            "CUDA_VISIBLE_DEVICES": "",
            # gRPC would also use a proxy for connections to this machine.
            "no_grpc_proxy": "127.0.0.1",
        }
        given.pop("TF_CONFIG", None)
        own = {}
        for each in container.get("env", []):
            if "valueFrom" in each:
                path = each["valueFrom"]["fieldRef"]["fieldPath"]
                annotation = re.fullmatch(r"metadata\.annotations\['(.+)'\]", path)[1]
                own[each["name"]] = pod["metadata"]["annotations"][annotation]
            else:
                # Only variables that are defined before.
                known = dict(own)
                text = REFERENCE.sub(lambda m, known=known: known.get(m[1], m[0]), each["value"])
                own[each["name"]] = HOST.sub(lambda m: self._address(m[1], hosts), text)
        return {**given, **own, **environ}

    def _address(self, host, hosts):
        assert host in hosts, f"the cluster has no host {host}"
        if host not in self._ports:
            [self._ports[host]] = free_ports(1)
        return f"127.0.0.1:{self._ports[host]}"

    def forget(self, job):
        """Give the hosts of a job other ports: an earlier process may still have its own."""
        suffix = f".{job['metadata']['name']}"
        self._ports = {h: port for h, port in self._ports.items() if not h.endswith(suffix)}

    def update(self, pod):
        """Write the end of the pod's process into its status; remove the pod if it is deleted."""
        name = pod["metadata"]["name"]
        process = self.processes[name]
        # The thread that reads the pipe closes it at the end.
        if process.stdout.closed:
            code = process.wait()
            if pod["status"]["phase"] == "Running":
                self.server.end_pod(pod, 128 - code if code < 0 else code)
            if "deletionTimestamp" in pod["metadata"]:
                self.server.remove_pod(name)

    def terminate(self, pods):
        for pod in pods:
            if "deletionTimestamp" not in pod["metadata"]:
                pod["metadata"]["deletionTimestamp"] = now()
                self._signal(self.processes[pod["metadata"]["name"]])

    def preempt(self, job, replica):
        """End a pod as the scheduler does for a pod of a higher priority, or a spot node."""
        with self.server.lock:
            pod = self._pod_of(job, replica)
            disruption = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "PreemptionByScheduler",
            }
            pod["status"]["conditions"].append(disruption)
            pod["metadata"]["deletionTimestamp"] = now()
        self.processes[pod["metadata"]["name"]].send_signal(signal.SIGKILL)

    def reject(self, job, replica):
        """Fail a running pod as a restarted kubelet does if the GPU of the pod is gone.

        The pod has no exit code, and no condition that names a disruption.
        """
        with self.server.lock:
            pod = self._pod_of(job, replica)
            pod["status"] |= {"phase": "Failed", "reason": "UnexpectedAdmissionError"}
            del pod["status"]["containerStatuses"]
        self.processes[pod["metadata"]["name"]].kill()
        self.server.log_of(pod).end()

    def _signal(self, process):
        process.terminate()
        # Shorter than terminationGracePeriodSeconds, to save time in tests: TensorFlow does not
        # exit after SIGTERM while it connects to its peers.
        killer = threading.Timer(SECONDS_TO_END, process.kill)
        killer.daemon = True
        killer.start()


def _read(process, log):
    with process.stdout as lines:
        for line in lines:
            log.write(line.decode(errors="replace").rstrip("\n"))


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
