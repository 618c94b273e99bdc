"""SIGTERM to a process whose main thread is inside a library."""

import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.trainer_module.conftest import make_job, start_task
from tests.trainer_module.scripted_cluster import REPOSITORY
from tests.waiting import wait
from trainer_module.cluster.resources import allocate

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


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_worker_that_waits_for_the_others_ends_at_sigterm(tmp_path):
    job = make_job(tmp_path, tmp_path, strategy="multi_worker_mirrored", workers=2)
    place, _ = allocate({"worker": 2})
    process = start_task(job, tmp_path, env=place.environ)
    try:
        wait(lambda: "Connecting to all tasks" in (tmp_path / "log").read_text(), 400)
        time.sleep(2)
        process.terminate()
        assert process.wait(60) == 143
    finally:
        process.kill()
        process.wait()
