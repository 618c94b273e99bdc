"""Beam's job server for Flink, a Java process that this process starts and ends."""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from core.flink import guard
from core.flink.failures import FlinkError, java_cause, java_error
from core.flink.names import (
    EXIT_WITHOUT_MEMORY,
    JAVA,
    LOCAL,
    OPEN_PACKAGES,
    QUICK_START,
)

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
_SECONDS_TO_END = 60
"""Longer than the guard needs to end Java and to cancel the jobs of an unreachable cluster."""
_STARTED = re.compile(r"JobService started on \S+:(\d+)")
_REST = re.compile(r"Rest endpoint listening at \S+:(\d+)")


class Settings(NamedTuple):
    """See `pipeline.flink_settings` and `options`."""

    jars: str
    master: str
    slots: int
    logs: str


class JobServer:
    """A job server, which ends with this process, whatever ends this process.

    Attributes:
      log: the file with the log of the job server, and with `[local]` also with that of Flink.
    """

    def __init__(self, settings: Settings, prefix: str):
        """Start the process; return when it accepts jobs.

        Args:
          settings: the settings of the job server.
          prefix: start of the names of the jobs, which are cancelled when this process dies.

        Raises:
          FlinkError: Java is missing, or the job server ended or did not start in time.
        """
        self._master = settings.master
        self._folder = tempfile.mkdtemp(prefix="beam-flink-")
        folder = Path(settings.logs)
        folder.mkdir(parents=True, exist_ok=True)
        # Two processes may use the same folder at the same time.
        self.log = folder / f"flink-job-server-{os.getpid()}.log"
        self._new_log = _Appended(self.log)
        self._rest_port = ""
        (Path(self._folder) / "flink-conf.yaml").write_text(_configuration(settings, self._folder))
        address = "" if settings.master == LOCAL else settings.master
        with self.log.open("ab") as sink:
            command = _command(settings, self._folder)
            self._process = guard.start(
                address, prefix, self._folder, *command, stdout=sink, stderr=sink
            )
        atexit.register(self.stop)
        try:
            self.endpoint = f"localhost:{self._wait_for_port()}"
        except BaseException:
            self.stop()
            raise

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def rest_address(self) -> str | None:
        """`HOST:PORT` of Flink's REST API; None before the first job on `[local]`."""
        if self._master != LOCAL:
            return self._master
        # Flink starts anew for each job, with a port of its own.
        for line in self._new_log.next_lines():
            found = _REST.search(line)
            if found:
                self._rest_port = found[1]
        return f"127.0.0.1:{self._rest_port}" if self._rest_port else None

    def last_error(self) -> str:
        """Return the last error of Java in the log, in one line; empty if there is none."""
        return java_error("\n".join(self._new_log.text().splitlines()[-200:]))

    def stop(self) -> None:
        """End the process, and with `[local]` all of Flink. A second call does nothing."""
        atexit.unregister(self.stop)
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait_for_port(self) -> int:
        deadline = time.monotonic() + _SECONDS_TO_START
        while time.monotonic() < deadline:
            found = _STARTED.search(self._new_log.text())
            if found:
                return int(found[1])
            if not self.alive:
                error = java_cause(self._new_log.text())
                raise FlinkError(f"the Flink job server did not start: {error}")
            time.sleep(0.1)
        raise FlinkError(
            f"the Flink job server did not start within {_SECONDS_TO_START} s, see {self.log}"
        )


class _Appended:
    """The text that is appended to a file from now on; older runs write to the same file."""

    def __init__(self, path: Path):
        self._path = path
        self._start = self._next = path.stat().st_size if path.exists() else 0

    def text(self) -> str:
        with self._path.open("rb") as file:
            file.seek(self._start)
            return file.read().decode(errors="replace")

    def next_lines(self) -> Iterator[str]:
        """Yield the complete lines since the last call: the log of a long run is large."""
        with self._path.open("rb") as file:
            file.seek(self._next)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._next += len(line)
                yield line.decode(errors="replace")


_servers: dict[Settings, JobServer] = {}
_starting = threading.Lock()


def shared_job_server(settings: Settings, prefix: str) -> JobServer:
    """Return the job server of this process with these settings; start it if there is none."""
    with _starting:
        server = _servers.get(settings)
        if server is None or not server.alive:
            server = _servers[settings] = JobServer(settings, prefix)
        return server


def _command(settings: Settings, folder: str) -> list[str]:
    return [
        JAVA,
        f"-Xmx{_HEAP}",
        EXIT_WITHOUT_MEMORY,
        *([] if settings.master == LOCAL else QUICK_START),
        *OPEN_PACKAGES,
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss",
        "-cp",
        class_path(settings.jars),
        _MAIN,
        f"--flink-master={settings.master}",
        f"--flink-conf-dir={folder}",
        f"--artifacts-dir={folder}/artifacts",
        "--job-host=localhost",
        "--job-port=0",
        "--artifact-port=0",
        "--expansion-port=0",
    ]


def class_path(jars: str) -> str:
    """Return the jar that contains all jars, which Maven makes, or else the jars themselves."""
    one = os.path.join(jars, _ONE_JAR)
    return os.path.join(one if os.path.isdir(one) else jars, "*")


def _configuration(settings: Settings, folder: str) -> str:
    """Return Flink's configuration for `[local]`; a cluster has its own."""
    values = {
        "rest.bind-address": "127.0.0.1",
        "rest.address": "127.0.0.1",
        "rest.bind-port": "0",
        "jobmanager.bind-host": "127.0.0.1",
        "taskmanager.bind-host": "127.0.0.1",
        "taskmanager.numberOfTaskSlots": settings.slots,
        "taskmanager.memory.network.min": _NETWORK,
        "taskmanager.memory.network.max": _NETWORK,
        "taskmanager.memory.segment-size": "16kb",
        "io.tmp.dirs": folder,
    }
    return "".join(f"{key}: {value}\n" for key, value in values.items())
