"""SIGTERM to the first process of a container, which ignores signals without a handler."""

import signal
import subprocess
import sys

import psutil
import pytest

from tests.waiting import wait
from trainer_module.cluster.resources import allocate

SERVE = """
import sys
from trainer_module import task
sys.exit(task.main(sys.argv[1:]))
"""
_NEW = ["unshare", "--fork", "--pid", "--map-root-user"]


def can_unshare():
    return subprocess.run([*_NEW, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_a_parameter_server_in_a_pod_ends_at_sigterm(prepared, tmp_path):
    from tests.trainer_module.conftest import make_job

    if not can_unshare():
        pytest.skip("this user may not create a namespace for processes")
    job = make_job(prepared, tmp_path, strategy="parameter_server")
    file = tmp_path / "job.json"
    file.write_text(job.model_dump_json())
    [*_, server] = allocate({"chief": 1, "worker": 1, "ps": 1})
    assert server.task.task_type == "ps"
    log = tmp_path / "log"
    with open(log, "w") as stream:
        process = subprocess.Popen(
            [*_NEW, sys.executable, "-c", SERVE, str(file)],
            env=server.environ,
            stdout=stream,
            stderr=subprocess.STDOUT,
        )
    try:
        wait(lambda: "serves at" in log.read_text(), 400)
        [first] = psutil.Process(process.pid).children()
        first.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    finally:
        process.kill()
        process.wait()
