"""Locks between the runs on one machine, by flock: the kernel releases them when a process ends.

A run holds the lock of its local `paths.root`. `amazon-reviews run` acquires it and passes it to
the pipeline's process as an open descriptor. A run of the TFX command line acquires it itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import socket
import sys
import time
from collections.abc import Iterator

from core.errors import ConfigError
from core.files import WITHOUT_LOCKS
from platforms.local.places import make_folder

DESCRIPTOR_VARIABLE = "PIPELINE_LOCK_FD"
_FILE = ".lock"
_SECONDS_TO_WRITE = 1.0
"""Seconds for a process that has just acquired the lock to write its name into the file."""


def lock_root(root: str) -> int | None:
    """Lock a local `paths.root` until this process and those that inherit the lock have ended.

    Returns:
      The descriptor of the lock. None if `root` is in a bucket. None and a warning on standard
      error if `root` is on a file system without locks.

    Raises:
      ConfigError: another process holds the lock; the message names the process.
    """
    inherited = os.environ.pop(DESCRIPTOR_VARIABLE, None)
    if inherited is not None:
        os.set_inheritable(int(inherited), False)
        return int(inherited)
    if "://" in root:
        return None
    make_folder("paths.root", root)
    path = os.path.join(root, _FILE)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ConfigError(f"paths.root: {path} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(lock)
        os.close(lock)
        raise ConfigError(
            f"paths.root: {root} is in use by {holder}; repeat the command after the end of "
            "that process, or set another paths.root"
        ) from None
    except OSError as error:
        os.close(lock)
        if error.errno not in WITHOUT_LOCKS:
            raise
        print(
            f"paths.root: {root} cannot be locked ({error.strerror}); do not start a second run "
            "with it at the same time",
            file=sys.stderr,
        )
        return None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n{socket.gethostname()}\n{_own_command()}\n".encode(), 0)
    return lock


@contextlib.contextmanager
def waiting_lock(path: str) -> Iterator[None]:
    """Hold the lock file `path` while the block runs; wait for it if another process has it."""
    with open(path, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
        yield


def _holder(lock: int) -> str:
    """Return the process that the lock file names, such as `process 12 (amazon-reviews run)`."""
    deadline = time.monotonic() + _SECONDS_TO_WRITE
    while True:
        lines = os.pread(lock, 4096, 0).decode(errors="replace").splitlines()
        if len(lines) == 3:
            pid, host, command = lines
            is_remote = host != socket.gethostname()
            # A process that has ended is an earlier holder of the lock.
            if is_remote or os.path.exists(f"/proc/{pid}"):
                return f"process {pid}{f' on {host}' if is_remote else ''} ({command})"
        if time.monotonic() > deadline:
            return "another process"
        time.sleep(0.02)


def _own_command() -> str:
    program, *arguments = sys.argv
    return shlex.join([os.path.basename(program), *arguments]).replace("\n", " ")
