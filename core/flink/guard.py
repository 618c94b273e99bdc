"""Run a command until it ends or the parent of this process dies; then cancel Flink's jobs.

    python -m core.flink.guard ADDRESS PREFIX COMMAND...

Standard input is a pipe from the parent. It closes when the parent ends, also after `kill -9`. Then
this process ends the command, and cancels the jobs at ADDRESS whose names start with PREFIX.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

from core.flink import rest

_SECONDS_TO_END = 10


def main(address: str, prefix: str, *command: str) -> int:
    """Run `command`, and return its exit code.

    Args:
      address: REST address of a Flink cluster; empty if the command itself contains Flink.
      prefix: start of the names of the jobs to cancel.
      command: the command; empty: only wait for the end of the parent.
    """
    # The terminal sends Ctrl-C to this process too. The parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not command:
        _wait_for_parent()
        rest.cancel_jobs(address, prefix)
        return 0
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def end() -> None:
        _wait_for_parent()
        if address:
            rest.cancel_jobs(address, prefix)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_TO_END)
        process.kill()

    threading.Thread(target=end, daemon=True).start()
    return process.wait()


def _wait_for_parent() -> None:
    while os.read(0, 1):
        pass


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
