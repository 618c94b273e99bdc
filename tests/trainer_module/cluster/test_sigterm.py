"""SIGTERM to a process whose main thread is inside a library."""

import signal
import subprocess
import sys

import psutil
import pytest

from tests.trainer_module.scripted_cluster import REPOSITORY

NEW_CONTAINER = ["unshare", "--fork", "--kill-child", "--pid", "--map-root-user"]
IGNORES = """
import ctypes
from trainer_module.cluster import exits
exits.end_at_sigterm()
library = ctypes.CDLL(None)
library.signal(15, 1)
print("ready", flush=True)
library.pause()
"""


@pytest.mark.parametrize("container", [False, True])
def test_a_process_ends_whatever_a_library_does_with_sigterm(container):
    """For the first process of a container, Linux ignores signals without a handler."""
    new = NEW_CONTAINER if container else []
    if subprocess.run([*new, "true"], capture_output=True).returncode:
        pytest.skip("this user may not create a namespace for processes")
    command = [*new, sys.executable, "-c", IGNORES]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=REPOSITORY) as process:
        assert process.stdout.readline() == b"ready\n"
        target = psutil.Process(process.pid).children()[0] if container else process
        target.send_signal(signal.SIGTERM)
        try:
            assert process.wait(60) == 143
        finally:
            process.kill()
