"""Run a command until it ends or the parent of this process dies; then cancel Flink's jobs.

The arguments are ADDRESS, PREFIX, FOLDER and the words of the command. Standard input is a pipe
from the parent. It closes when the parent ends, also after `kill -9`. Then this process ends the
command, and cancels the jobs at ADDRESS whose names start with PREFIX. At the end it removes
FOLDER. If this process is killed, the command ends with it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
import threading
from typing import Any

from core import processes
from core.flink import rest

_SECONDS_TO_END = 10


def start(
    address: str, prefix: str, folder: str, *command: str, **output: Any
) -> subprocess.Popen[bytes]:
    """Start this module as a process; the arguments are those of `main`.

    Args:
      output: `stdout` and `stderr` of `subprocess.Popen`.
    """
    arguments = (address, prefix, folder, *command)
    return subprocess.Popen(
        processes.command("core.flink.guard", *arguments, ends_with_parent=False),
        stdin=subprocess.PIPE,
        # Signals of the terminal would end this process before its parent.
        start_new_session=True,
        **output,
    )


def main(address: str, prefix: str, folder: str, *command: str) -> int:
    """Run `command`, and return its exit code.

    Args:
      address: REST address of a Flink cluster; empty if the command itself contains Flink.
      prefix: start of the names of the jobs to cancel.
      folder: temporary folder of the command; empty if there is none.
      command: the command; empty: only wait for the end of the parent.
    """
    if not command:
        _wait_for_parent()
        rest.cancel_jobs(address, prefix)
        return 0
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        # Java does not do this itself. This process has no other thread yet.
        preexec_fn=functools.partial(processes.end_with, os.getpid()),
    )
    ending = threading.Event()

    def end() -> None:
        _wait_for_parent()
        ending.set()
        process.terminate()
        if address:
            rest.cancel_jobs(address, prefix)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
        process.kill()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    code = process.wait()
    if ending.is_set():
        thread.join()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    return code


def _wait_for_parent() -> None:
    while os.read(0, 1):
        pass


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
