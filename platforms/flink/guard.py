"""Run a command until it ends or the parent of this process dies; then cancel Flink's jobs.

Standard input is a pipe from the parent. It closes when the parent ends, also after `kill -9`. If
this process is killed, the command ends with it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import shutil
import subprocess
import sys
from typing import Any

from core import processes
from platforms.flink import rest

_SECONDS_BETWEEN = 0.2
_SECONDS_TO_END = 10
_SECONDS_TO_STOP = 60
"""Timeout of a guard that is stopped. A guard requires less time to end its command, and to try to
cancel the jobs of an unreachable Flink."""


def start(
    *command: str, address: str = "", prefix: str = "", folder: str = "", **output: Any
) -> subprocess.Popen[bytes]:
    """Start a guard, which is a process that runs this module.

    Args:
      *command: the command to run; without it the guard only waits for the end of this process.
      address: `HOST:PORT` of the REST API of the Flink cluster whose jobs the guard cancels; empty:
        it cancels none.
      prefix: the beginning of the names of these jobs.
      folder: a temporary folder that the guard removes at its end; empty: there is none.
      **output: the arguments `stdout` and `stderr` of `subprocess.Popen`.

    Raises:
      OSError: the process cannot be started.
    """
    arguments = (address, prefix, folder, *command)
    return subprocess.Popen(
        processes.command("platforms.flink.guard", *arguments, ends_with_parent=False),
        stdin=subprocess.PIPE,
        # Signals of the terminal would end this process before its parent.
        start_new_session=True,
        **output,
    )


def stop(*guards: subprocess.Popen[bytes]) -> None:
    """End guards and their commands; a second call does nothing."""
    for guard in guards:
        assert guard.stdin is not None
        guard.stdin.close()
    for guard in guards:
        try:
            guard.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            guard.kill()
            guard.wait()


def main(address: str, prefix: str, folder: str, *command: str) -> int:
    """Run the command until it or the parent ends; return its exit code.

    Args:
      address: see `start`.
      prefix: see `start`.
      folder: see `start`.
      *command: see `start`.
    """
    # Java cannot end with its parent. `preexec_fn` is safe in a process with a single thread.
    end_with_this = functools.partial(processes.end_with, os.getpid())
    process = None
    if command:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=end_with_this)
    while process is None or process.poll() is None:
        # The parent writes nothing, so the pipe has something to read only after its end.
        if select.select([0], [], [], _SECONDS_BETWEEN)[0]:
            break
    if address:
        rest.cancel_jobs(address, prefix)
    if process:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
        process.kill()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    return process.wait() if process else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
