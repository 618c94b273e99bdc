"""Beam's job server for Flink, a Java process that this process starts and ends."""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

from pipeline.cluster_settings import LOCAL
from platforms.flink import guard, rest
from platforms.flink.failures import FlinkError, java_cause
from preprocessing.reading.open_files import link_file

OPEN_PACKAGES = [
    f"--add-opens=java.base/{name}=ALL-UNNAMED"
    for name in ("java.lang", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
]
"""Options of Java for the packages that Flink accesses by reflection, which Java 17 forbids."""
EXIT_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""Option of Java to exit if the memory is exhausted. By default only the thread that requires the
memory ends, such as the receiver of the output of a worker, and then the job never ends."""
QUICK_START = ["-XX:TieredStopAtLevel=1"]
"""Option of Java that disables the optimizing compiler, for a process through which no data passes.
In a run of the pipeline, this compiler used half of the CPU time of the JobManager and of the job
server."""
_MAIN = "org.apache.beam.runners.flink.FlinkJobServerDriver"
_ONE_JAR = "job-server"
"""Folder with the single jar that `kubeflow/flink/pom.xml` builds, next to the separate jars. Each
job uploads the class path of the job server to a cluster that does not have it, one jar after the
other."""
_HEAP = "2g"
"""Heap of the job server. With `[local]`, all of Flink runs in it. With a cluster, the job server
and the JobManager together took 0.9 GiB in the benchmark."""
_NETWORK = "512m"
"""Memory for Flink's network buffers, because Flink's default is too small: with a vocabulary,
Transform has about 400 connections between its tasks, each with buffers of its own."""
_SECONDS_TO_START = 120
_STARTED = re.compile(r"JobService started on \S+:(\d+)\n")
_REST = re.compile(r"Rest endpoint listening at \S+:(\d+)\n")


class JobServer:
    """A job server that ends with this process, even if this process is killed.

    Attributes:
      log: the file with the log of the job server, and with `[local]` also with that of Flink.
      endpoint: `HOST:PORT` at which the job server accepts jobs.
      process: the guard of the job server.
    """

    def __init__(self, jars: str, master: str, slots: int, logs: str):
        """Start the job server, and return when it accepts jobs.

        Args:
          jars: the folder with the jars of the job server and of Flink.
          master: the address of the Flink cluster, or `[local]`.
          slots: the number of task slots of `[local]`.
          logs: the folder for the log, which is created if it is missing.

        Raises:
          FlinkError: the job server does not start.
          OSError: the log cannot be written.
        """
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
"""Return a JobServer. Calls with the same arguments return the same job server."""


def _class_path(jars: str, master: str, folder: str) -> str:
    """Return the class path of the job server: the single jar if Maven built it, else all jars.

    Args:
      jars: the folder with the jars.
      master: the address of the Flink cluster, or `[local]`.
      folder: the temporary folder of the job server.
    """
    one = Path(jars, _ONE_JAR)
    source = one if one.is_dir() else Path(jars)
    if not _has_jars(master, jars):
        return str(source / "*")
    # Each job uploads the class path, which takes seconds and fills the metaspace of the
    # TaskManagers. No option of Beam disables this, but Beam omits the paths that contain this
    # folder (`PipelineResources.isStageable`). It resolves symbolic links.
    not_uploaded = Path(folder, "gradle", "wrapper")
    try:
        not_uploaded.mkdir(parents=True)
        for jar in source.glob("*.jar"):
            link_file(str(jar), str(not_uploaded / jar.name))
    except OSError:  # The folder for temporary files may have no space for copies.
        shutil.rmtree(not_uploaded, ignore_errors=True)
        return str(source / "*")
    return str(not_uploaded / "*")


def _has_jars(master: str, jars: str) -> bool:
    """Return whether all jars of a folder are in the class path of a Flink cluster, by their names.

    Only the JobManager reports its class path. The TaskManagers of a cluster have the same one.

    Args:
      master: the address of the cluster; `[local]` has no class path of its own.
      jars: the folder with the jars of the job server and of Flink.
    """
    if master == LOCAL:
        return False
    try:
        found = {os.path.basename(path) for path in rest.class_path(master)}
    except rest.ERRORS:
        return False
    names = {jar.name for jar in Path(jars).glob("*.jar")}
    return bool(names) and names <= found


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
        _class_path(jars, master, folder),
        _MAIN,
        f"--flink-master={master}",
        f"--flink-conf-dir={folder}",
        f"--artifacts-dir={folder}/artifacts",
        "--job-host=localhost",
        *(f"--{name}-port=0" for name in ("job", "artifact", "expansion")),
    ]


def _configuration(slots: int, folder: str) -> str:
    """Return the configuration file of Flink for `[local]`; a cluster has one of its own."""
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
