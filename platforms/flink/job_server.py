"""Beam's job server for Flink, a Java process that this process starts and ends."""

from __future__ import annotations

import functools
import os
import re
import tempfile
import time
from pathlib import Path

from pipeline.cluster_settings import LOCAL
from platforms.flink import guard
from platforms.flink.failures import FlinkError, java_cause

OPEN_PACKAGES = [
    f"--add-opens=java.base/{name}=ALL-UNNAMED"
    for name in ("java.lang", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
]
"""Options of Java for the packages that Flink accesses by reflection, which Java 17 forbids."""
EXIT_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""Option of Java without which a process continues after the lack of memory has ended one of its
threads, such as the one that receives the output of a worker. The job would wait for it in vain."""
QUICK_START = ["-XX:TieredStopAtLevel=1"]
"""Options of Java for a process that no data passes through: no optimizing compiler. With it, half
of the CPU time of the JobManager and of the job server was compilation, in a run of the pipeline.
"""
_MAIN = "org.apache.beam.runners.flink.FlinkJobServerDriver"
_ONE_JAR = "job-server"
"""Folder of `kubeflow/flink/pom.xml`, next to the single jars. Each job uploads the class path of
the job server to the cluster, one jar after the other."""
_HEAP = "2g"
"""With `[local]` it contains all of Flink. With a cluster, job server and JobManager together took
0.9 GiB in the benchmark."""
_NETWORK = "512m"
"""Flink's default is too small: with a vocabulary, Transform has about 400 connections between its
tasks, each with buffers of its own."""
_SECONDS_TO_START = 120
_STARTED = re.compile(r"JobService started on \S+:(\d+)\n")
_REST = re.compile(r"Rest endpoint listening at \S+:(\d+)\n")


class JobServer:
    """A job server, which ends with this process, whatever ends this process.

    Attributes:
      log: the file with the log of the job server, and with `[local]` also with that of Flink.
      endpoint: `HOST:PORT` at which it accepts jobs.
      process: its guard.
    """

    def __init__(self, jars: str, master: str, slots: int, logs: str):
        """Start the process; return when it accepts jobs, or raise a FlinkError."""
        self._master = master
        Path(logs).mkdir(parents=True, exist_ok=True)
        # Two processes may use the same folder at the same time.
        self.log = Path(logs) / f"flink-job-server-{os.getpid()}.log"
        folder = tempfile.mkdtemp(prefix="beam-flink-")
        Path(folder, "flink-conf.yaml").write_text(_configuration(slots, folder))
        with self.log.open("wb") as sink:
            self.process = guard.start(
                *_command(jars, master, folder), folder=folder, stdout=sink, stderr=sink
            )
        self.endpoint = f"localhost:{self._wait_for_port()}"

    @property
    def rest_address(self) -> str | None:
        """`HOST:PORT` of Flink's REST API; None before the first job on `[local]`."""
        if self._master != LOCAL:
            return self._master
        # Flink starts anew for each job, with a port of its own.
        ports = _REST.findall(self._text())
        return f"127.0.0.1:{ports[-1]}" if ports else None

    def _text(self) -> str:
        return self.log.read_text(errors="replace")

    def _wait_for_port(self) -> int:
        deadline = time.monotonic() + _SECONDS_TO_START
        while time.monotonic() < deadline:
            has_ended = self.process.poll() is not None
            if found := _STARTED.search(self._text()):
                return int(found[1])
            if has_ended:
                raise FlinkError(f"the Flink job server did not start: {java_cause(self._text())}")
            time.sleep(0.1)
        raise FlinkError(
            f"the Flink job server did not start within {_SECONDS_TO_START} s, see {self.log}"
        )


shared_job_server = functools.cache(JobServer)
"""Return the job server of this process with these arguments."""


def class_path(jars: str) -> str:
    """Return the jar that contains all jars, which Maven makes, or else the jars themselves."""
    one = os.path.join(jars, _ONE_JAR)
    return os.path.join(one if os.path.isdir(one) else jars, "*")


def _command(jars: str, master: str, folder: str) -> list[str]:
    return [
        "java",
        f"-Xmx{_HEAP}",
        EXIT_WITHOUT_MEMORY,
        *([] if master == LOCAL else QUICK_START),
        *OPEN_PACKAGES,
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss",
        "-cp",
        class_path(jars),
        _MAIN,
        f"--flink-master={master}",
        f"--flink-conf-dir={folder}",
        f"--artifacts-dir={folder}/artifacts",
        "--job-host=localhost",
        *(f"--{name}-port=0" for name in ("job", "artifact", "expansion")),
    ]


def _configuration(slots: int, folder: str) -> str:
    """Return Flink's configuration for `[local]`; a cluster has its own."""
    return f"""\
rest.bind-address: 127.0.0.1
rest.address: 127.0.0.1
rest.bind-port: 0
jobmanager.bind-host: 127.0.0.1
taskmanager.bind-host: 127.0.0.1
taskmanager.numberOfTaskSlots: {slots}
taskmanager.memory.network.min: {_NETWORK}
taskmanager.memory.network.max: {_NETWORK}
taskmanager.memory.segment-size: 16kb
io.tmp.dirs: {folder}
"""
