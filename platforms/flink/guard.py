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
"""Longer than a guard needs to end its command, and to cancel the jobs of an unreachable Flink."""


def start(
    *command: str, address: str = "", prefix: str = "", folder: str = "", **output: Any
) -> subprocess.Popen[bytes]:
    """Start this module as a process.

    Args:
      command: the command; without it the process only waits for the end of this one.
      address: REST address of a Flink cluster, whose jobs are cancelled.
      prefix: start of the names of these jobs.
      folder: a temporary folder that is removed.
      output: `stdout` and `stderr` of `subprocess.Popen`.
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
    """Run the command of `start`, and return its exit code."""
    # Java does not do this itself. This process has no other thread.
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
