"""A server that imports the slow libraries once, and forks for each requested run of pytest.

A line of standard input is a request. A line of standard output is the exit code of its run, or 0
after a timeout. The server imports no module of this repository: each fork imports them itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time

import apache_beam  # noqa: F401
import hypothesis  # noqa: F401
import kfp  # noqa: F401
import pytest
import tensorflow_data_validation  # noqa: F401
import tensorflow_model_analysis  # noqa: F401
import tensorflow_transform  # noqa: F401
import tfx.orchestration.local.local_dag_runner
import tfx.v1  # noqa: F401


def run(arguments: list[str], seconds: float, log: str) -> int:
    """Run pytest in a fork; return its exit code, after killing all processes of the fork."""
    child = os.fork()
    if not child:
        os.setsid()
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for descriptor in (1, 2):
            os.dup2(file, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        code = 1
        try:
            code = pytest.main(arguments)
        finally:
            os._exit(code)
    parent, end = os.getppid(), time.monotonic() + seconds
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end or os.getppid() != parent:
            break
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if ended == (0, 0):
        os.waitpid(child, 0)
        return 0
    return os.waitstatus_to_exitcode(ended[1])


if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run(request["arguments"], request["seconds"], sys.argv[1])), flush=True)
