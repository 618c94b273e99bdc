"""Fork workers from a process that has imported their libraries.

The imports take a worker about ten CPU seconds, and each job starts new workers. The first worker
of a TaskManager or a worker pool forks the fork server, a process without threads of its own that
imports the libraries once. The process that the TaskManager starts, the client, connects to the
socket of the server, passes its standard streams, and waits for the exit code of the worker that
the server forks.

A server belongs to one starter (the TaskManager or the pool), one user, one Python and one set of
environment variables. It ends with its starter, and after a time without workers. The worker ends
with its client and with the server.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import importlib
import json
import os
import socket
import stat
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from core import processes
from core.flink.names import WORKER_LOG_VARIABLE
from core.imports import large_imports

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

LIBRARIES: tuple[str, ...] = (
    "apache_beam.runners.worker.sdk_worker_main",
    "tensorflow",
    "tensorflow_data_validation",
    "tensorflow_transform.beam",
    "tensorflow_model_analysis",
    "tfx.components",
)
"""Only libraries: the workers import this package themselves, because a checkout may change."""
SECONDS_WITHOUT_WORKERS = 600.0

_SECONDS_BETWEEN = 1.0
_SECONDS_TO_SEND = 10.0
_BYTES = 1 << 16
_STARTED = b"started"

Work = Callable[[list[str]], None]


def run(work: Work, arguments: list[str]) -> int | None:
    """Call `work(arguments)` in a process that the fork server forks, with the streams of this one.

    The server is forked from this process if there is none, so this process must have no threads.

    Returns:
      The exit code of the process; 128 and the number of the signal if a signal ended it. None if
      there is no fork server, and nothing was called.
    """
    try:
        connection = _connect(work)
        socket.send_fds(connection, [json.dumps(arguments).encode()], [0, 1, 2])
        started = connection.recv(_BYTES) == _STARTED
        reason = "" if started else "it has ended"
    except OSError as error:
        reason = str(error)
    if reason:
        print(f"no fork server ({reason}): this worker imports its libraries", file=sys.stderr)
        return None
    with connection:
        try:
            code = connection.recv(_BYTES)
        except ConnectionError:
            code = b""
    if not code:
        print("the fork server ended, and its workers with it", file=sys.stderr)
        return 1
    return int(code)


def _connect(work: Work) -> socket.socket:
    """Return a connection to the fork server, which may not have imported everything yet.

    Raises:
      OSError: the folder of the sockets is not private, or the system lacks something.
    """
    folder = _private_folder()
    address = folder / f"{_key()}.socket"
    with (folder / "lock").open("w") as lock:
        # Of several workers that start at the same time, only one forks the server.
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            return _connected(address)
        except (FileNotFoundError, ConnectionRefusedError):
            _remove_unused(folder)
        with _socket() as listener:
            listener.bind(str(address))
            listener.listen()
            starter = os.getppid()
            if os.fork() == 0:
                lock.close()
                _Server(listener, address, work).run(starter)
        return _connected(address)


def _private_folder() -> Path:
    """Return the folder of the sockets, which only this user can access."""
    folder = Path(tempfile.gettempdir(), f"beam-workers-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a private folder of this user")
    return folder


def _key() -> str:
    """Return a value that differs between starters, installations and environments."""
    # The log differs between runs; the client opens it.
    environ = {key: value for key, value in os.environ.items() if key != WORKER_LOG_VARIABLE}
    # The folder changes when a library is installed.
    libraries = os.stat(sysconfig.get_path("purelib")).st_mtime_ns
    parts = [
        os.getppid(),
        sys.executable,
        sys.path,
        libraries,
        os.getcwd(),
        sorted(environ.items()),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _socket() -> socket.socket:
    # The socket keeps the boundaries of messages.
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _connected(address: Path) -> socket.socket:
    connection = _socket()
    try:
        connection.connect(str(address))
    except BaseException:
        connection.close()
        raise
    return connection


def _remove_unused(folder: Path) -> None:
    """Remove the sockets of servers that were killed."""
    for address in folder.glob("*.socket"):
        try:
            _connected(address).close()
        except OSError:
            address.unlink(missing_ok=True)


class _Server:
    """The fork server, in a process of its own."""

    def __init__(self, listener: socket.socket, address: Path, work: Work):
        self._listener = listener
        self._address = address
        self._work = work
        self._workers: dict[socket.socket, ForkProcess] = {}

    def run(self, starter: int) -> None:
        """Serve until the end of the starter, and end this process.

        Args:
          starter: the pid of the TaskManager or pool.
        """
        try:
            os.setsid()
            with large_imports():
                for name in LIBRARIES:
                    importlib.import_module(name)
            # Until here an error is in the log of the first worker.
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            # A collection would write to the pages of these objects, which then are not shared.
            gc.collect()
            gc.freeze()
            self._serve(starter)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            self._address.unlink(missing_ok=True)
            for worker in self._workers.values():
                worker.kill()
            os._exit(0)

    def _serve(self, starter: int) -> None:
        from multiprocessing import connection

        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(starter)
            used = time.monotonic()
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                if self._workers:
                    used = time.monotonic()
                elif time.monotonic() - used > SECONDS_WITHOUT_WORKERS:
                    return
                ended = {worker.sentinel: client for client, worker in self._workers.items()}
                for ready in connection.wait(
                    [self._listener, *self._workers, *ended], _SECONDS_BETWEEN
                ):
                    if ready is self._listener:
                        self._start()
                    elif ready in ended:
                        self._finish(ended[ready])
                    elif ready in self._workers:
                        # The client sends nothing more, so this is its end.
                        self._workers[ready].kill()

    def _start(self) -> None:
        import multiprocessing

        client, _ = self._listener.accept()
        client.settimeout(_SECONDS_TO_SEND)
        try:
            message, streams, _, _ = socket.recv_fds(client, _BYTES, 3)
            arguments = json.loads(message)
        except (OSError, ValueError):
            # The client has ended.
            client.close()
            return
        worker = multiprocessing.get_context("fork").Process(
            target=self._in_worker, args=(os.getpid(), client, streams, arguments)
        )
        worker.start()
        for stream in streams:
            os.close(stream)
        self._workers[client] = worker
        with contextlib.suppress(OSError):
            client.send(_STARTED)

    def _finish(self, client: socket.socket) -> None:
        worker = self._workers.pop(client)
        worker.join()
        code = worker.exitcode or 0
        with contextlib.suppress(OSError):
            client.send(str(code if code >= 0 else 128 - code).encode())
        client.close()

    def _in_worker(
        self, server: int, client: socket.socket, streams: list[int], arguments: list[str]
    ) -> None:
        import numpy as np

        processes.end_with(server)
        for inherited in (self._listener, client, *self._workers):
            inherited.close()
        for stream, received in enumerate(streams):
            os.dup2(received, stream)
            os.close(received)
        # Otherwise all workers draw the same numbers.
        np.random.seed()
        self._work(arguments)
