"""Run a Flink cluster on loopback until Ctrl-C, and print how to use it: `make flink-cluster`.

The cluster has a JobManager and TaskManagers, each in its own process. Flink's own scripts compute
the memory of a TaskManager and write it into the configuration. Without these scripts the
configuration requires every part of the memory.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from core import processes
from core.errors import UserError
from pipeline.cluster_settings import Flink
from platforms.beam import flink_jars
from platforms.flink import POOL_READY, guard, rest
from platforms.flink.checks import check_java
from platforms.flink.job_server import EXIT_WITHOUT_MEMORY, OPEN_PACKAGES, QUICK_START

_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_HEAP, _NETWORK, _METASPACE = 512, 512, 256
"""Memory of a TaskManager in MiB."""
_RESTART = "restart-strategy.exponential-delay"
_SECONDS_TO_START = 120


class FlinkCluster:
    """A standalone session cluster. Its processes end with this process, whatever ends it.

    Example:
      with FlinkCluster(jars, folder, task_managers=2) as cluster:
          ...  # beam.flink.master={cluster.address}, beam.flink.worker_pool={cluster.worker_pool}

    Attributes:
      address: `HOST:PORT` of the REST API, which `beam.flink.master` takes.
      folder: the folder for the configuration, the logs and temporary files.
      task_managers: the processes of `platforms.flink.guard`, each with a JVM as its child.
      worker_pools: the processes of the worker pools, one for each TaskManager.
      worker_pool: `localhost:PORT`, the address of its own worker pool in each TaskManager.
    """

    def __init__(self, jars: Path, folder: Path, task_managers: int = 2, slots: int = 1):
        """Prepare a cluster; the context manager starts it.

        Args:
          jars: the folder with the jars of `make flink`.
          folder: the folder for the configuration, the logs and temporary files.
          task_managers: the number of TaskManagers.
          slots: the number of slots of each TaskManager.
        """
        self._class_path, self.folder = f"{jars}/*", folder
        self._number, self._slots = task_managers, slots
        self.task_managers: list[subprocess.Popen[bytes]] = []
        self.worker_pools: list[subprocess.Popen[bytes]] = []
        self._job_manager: subprocess.Popen[bytes] | None = None
        self._rpc_port, rest_port, pool_port = _free_ports(3)
        self.address = f"localhost:{rest_port}"
        self.worker_pool = f"localhost:{pool_port}"

    def __enter__(self) -> FlinkCluster:
        self._write_configuration()
        self._job_manager = self._start_java(_JOB_MANAGER, "job-manager", *QUICK_START)
        for _ in range(self._number):
            self.add_task_manager()
        try:
            self.wait_until_ready(self._number * self._slots)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def add_task_manager(self) -> None:
        """Start one more TaskManager, and its worker pool.

        All pools have the same port, because a job has one address for all of them. So `localhost`
        is another loopback address in each TaskManager.
        """
        number = len(self.task_managers) + 1
        address, port = f"127.0.0.{number}", self.worker_pool.rpartition(":")[2]
        hosts = self.folder / f"hosts-{number}"
        hosts.write_text(f"{address} localhost\n127.0.0.1 {socket.gethostname()}\n")
        # The guard of `_start` ends it.
        command = processes.command(
            "platforms.flink.worker_pool", f"{address}:{port}", ends_with_parent=False
        )
        self.worker_pools.append(self._start(f"worker-pool-{number}", *command))
        option = f"-Djdk.net.hosts.file={hosts}"
        self.task_managers.append(self._start_java(_TASK_MANAGER, f"task-manager-{number}", option))

    def wait_until_ready(self, number: int) -> None:
        """Wait until the cluster has enough slots, and its worker pools can start workers.

        Args:
          number: the number of slots.

        Raises:
          UserError: a process has ended, or the timeout has expired.
        """
        deadline = time.monotonic() + _SECONDS_TO_START
        while time.monotonic() < deadline:
            if any(process.poll() is not None for process in self._processes()):
                raise UserError(f"a process of Flink has ended, see the logs in {self.folder}")
            try:
                slots = rest.get(self.address, "/overview")["slots-total"]
            except rest.ERRORS:
                slots = 0
            if slots >= number and self._pools_are_ready():
                return
            time.sleep(0.2)
        raise UserError(f"Flink did not start within {_SECONDS_TO_START} s, see {self.folder}")

    def _pools_are_ready(self) -> bool:
        numbers = range(1, len(self.worker_pools) + 1)
        return all(POOL_READY in self._log(f"worker-pool-{n}").read_text() for n in numbers)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _start_java(self, main: str, name: str, *options: str) -> subprocess.Popen[bytes]:
        memory = [f"-Xmx{_HEAP + 256}m", f"-XX:MaxMetaspaceSize={_METASPACE}m"]
        jvm = [*memory, EXIT_WITHOUT_MEMORY, *options, *OPEN_PACKAGES, "-cp", self._class_path]
        return self._start(name, "java", *jvm, main, "--configDir", str(self.folder))

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with self._log(name).open("ab") as sink:
            return guard.start(*command, stdout=sink, stderr=sink)

    def _stop(self) -> None:
        guard.stop(*self._processes())
        shutil.rmtree(self.folder / "tmp", ignore_errors=True)

    def _processes(self) -> list[subprocess.Popen[bytes]]:
        others = [self._job_manager] if self._job_manager else []
        return [*self.task_managers, *self.worker_pools, *others]

    def _write_configuration(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        _, _, rest_port = self.address.partition(":")
        values = {
            "jobmanager.rpc.address": "127.0.0.1",
            "jobmanager.rpc.port": self._rpc_port,
            "jobmanager.bind-host": "127.0.0.1",
            "rest.address": "127.0.0.1",
            "rest.port": rest_port,
            "rest.bind-address": "127.0.0.1",
            "taskmanager.host": "127.0.0.1",
            "taskmanager.bind-host": "127.0.0.1",
            "taskmanager.numberOfTaskSlots": self._slots,
            "taskmanager.cpu.cores": self._slots,
            "taskmanager.memory.framework.heap.size": "128m",
            "taskmanager.memory.task.heap.size": f"{_HEAP}m",
            "taskmanager.memory.framework.off-heap.size": "128m",
            "taskmanager.memory.task.off-heap.size": "128m",
            "taskmanager.memory.managed.size": "256m",
            "taskmanager.memory.network.min": f"{_NETWORK}m",
            "taskmanager.memory.network.max": f"{_NETWORK}m",
            "taskmanager.memory.segment-size": "16kb",
            "taskmanager.memory.jvm-metaspace.size": f"{_METASPACE}m",
            "taskmanager.memory.jvm-overhead.min": "192m",
            "taskmanager.memory.jvm-overhead.max": "192m",
            # The lost connection of a dead process is noticed within seconds instead of a minute.
            "heartbeat.interval": "1000",
            "heartbeat.timeout": "10000",
            # The loss of a worker fails up to five tasks of the Evaluator at once. `fixed-delay`
            # counts each of them as a restart, `exponential-delay` counts them once.
            "restart-strategy.type": "exponential-delay",
            f"{_RESTART}.attempts-before-reset-backoff": 3,
            f"{_RESTART}.initial-backoff": "5 s",
            f"{_RESTART}.max-backoff": "5 s",
            f"{_RESTART}.jitter-factor": 0,
            # Every job loads Beam's classes from the class path, so that metaspace does not grow.
            "classloader.resolve-order": "parent-first",
            "io.tmp.dirs": temporary,
        }
        text = "".join(f"{key}: {value}\n" for key, value in values.items())
        (self.folder / "flink-conf.yaml").write_text(text)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def main() -> int:
    """Start the cluster, wait for Ctrl-C, end the cluster."""
    parser = argparse.ArgumentParser(description="Run a Flink cluster on this machine.")
    parser.add_argument("--task-managers", type=int, default=2, metavar="N")
    parser.add_argument("--slots", type=int, default=1, help="slots of each TaskManager")
    arguments = parser.parse_args()
    if min(arguments.task_managers, arguments.slots) < 1:
        parser.error("--task-managers and --slots must be at least 1")
    try:
        check_java(Flink())
        _run(arguments.task_managers, arguments.slots)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("the cluster has ended")
    return 0


def _run(task_managers: int, slots: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="flink-cluster-"))
    jars = flink_jars(Flink())
    with FlinkCluster(jars, folder, task_managers, slots) as cluster:
        print(f"Flink: http://{cluster.address}  logs: {folder}")
        print(
            f"amazon-reviews run --config flink --set beam.flink.master={cluster.address} "
            f"--set beam.flink.worker_pool={cluster.worker_pool} "
            f"--set beam.flink.parallelism={task_managers * slots}",
            flush=True,
        )
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
