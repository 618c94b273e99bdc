"""`make flink-cluster`: the command that it prints uses it, and Ctrl-C ends all of it."""

import os
import signal
import subprocess
import sys
import tempfile

import psutil
import pytest

from pipeline.config import load_config
from platforms.beam import beam_args
from platforms.flink import rest
from tests.checkout import CHECKOUT
from tests.waiting import alive, wait

CLUSTER = [sys.executable, "-m", "tools.flink_cluster"]
JOB = CHECKOUT / "tests" / "platforms" / "flink" / "flink_job.py"


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.xdist_group("flink")
@pytest.mark.usefixtures("flink_jars")
def test_the_printed_command_uses_the_cluster_and_ctrl_c_ends_it(tmp_path):
    # The address of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "TMPDIR": folder}
        command = [*CLUSTER, "--task-managers", "1"]
        with subprocess.Popen(
            command, cwd=CHECKOUT, env=environ, stdout=subprocess.PIPE, text=True
        ) as cluster:
            try:
                _use_and_end(cluster, tmp_path)
            finally:
                # Otherwise the end of this context would wait for ever after a failure.
                cluster.kill()


def _use_and_end(cluster, folder):
    address = cluster.stdout.readline().split()[1]
    words = cluster.stdout.readline().split()
    assert words[:4] == ["amazon-reviews", "run", "--config", "flink"]
    assert set(words[4::2]) == {"--set"}
    config = load_config("flink", [*words[5::2], f"paths.root={folder}"], environ={})
    assert address == f"http://{config.beam.flink.master}"
    assert config.beam.flink.parallelism == 1
    job = [sys.executable, str(JOB), "count", str(folder), *beam_args(config)]
    done = subprocess.run(job, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["done"], done.stderr[-2000:]
    # The overview may change some time after the result of the job.
    wait(lambda: not rest.running_jobs(config.beam.flink.master, ""))
    jobs = rest.get(config.beam.flink.master, "/jobs/overview")["jobs"]
    assert [each["state"] for each in jobs] == ["FINISHED"]
    processes = psutil.Process(cluster.pid).children(recursive=True)
    commands = " ".join(word for each in processes for word in each.cmdline())
    for part in ("StandaloneSessionCluster", "TaskManagerRunner", "flink.worker_pool"):
        assert part in commands
    cluster.send_signal(signal.SIGINT)
    assert cluster.communicate(timeout=120)[0] == "the cluster has ended\n"
    assert cluster.returncode == 0
    wait(lambda: not any(alive(each) for each in processes))
