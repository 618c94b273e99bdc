"""Faults in real trainings: kills, signals, a full disk."""

import resource
import signal
import time

import psutil
import pytest

from tests.exhaustive import exhaustive
from tests.trainer_module.conftest import (
    check_evaluation,
    learned_negation,
    make_job,
    run_task,
    start_task,
    summary,
)

pytestmark = pytest.mark.slow

CLUSTERS = {
    "multi_worker_mirrored": {"workers": 2, "batch_size_per_replica": 8},
    "parameter_server": {"workers": 1, "parameter_servers": 1},
}


def wait_for(sign, process, folder, seconds=400):
    deadline = time.monotonic() + seconds
    while not sign():
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.02)


def task_of(process, kind, index):
    """Return the process of the local cluster that runs this task."""
    [found] = [
        child
        for child in psutil.Process(process.pid).children()
        if f'{{"type": "{kind}", "index": {index}}}' in child.environ().get("TF_CONFIG", "")
    ]
    return found


@pytest.mark.parametrize(
    ("strategy", "kind", "index"),
    [("multi_worker_mirrored", "worker", 1), exhaustive("parameter_server", "ps", 0)],
)
def test_a_kill_ends_the_job_with_one_line_and_the_next_run_resumes(
    prepared, tmp_path, strategy, kind, index
):
    job = make_job(
        prepared, tmp_path, strategy=strategy, epochs=20, checkpoint_steps=20, **CLUSTERS[strategy]
    )
    process = start_task(job, tmp_path)
    # In the middle of the second epoch of 16 or 17 steps.
    wait_for((tmp_path / "checkpoints" / "checkpoint").exists, process, tmp_path)
    task_of(process, kind, index).send_signal(signal.SIGKILL)
    assert process.wait(timeout=90) == 1
    log = (tmp_path / "log").read_text()
    [line] = [line for line in log.splitlines() if line.startswith(f"{kind} {index} was killed")]
    assert "SIGKILL" in line
    assert "nothing was exported, run again to continue from the last checkpoint" in line
    assert not (tmp_path / "model").exists()
    assert (tmp_path / "checkpoints").exists()

    again = run_task(job, tmp_path)
    assert again.code == 0, again.log
    assert "Resuming after step" in again.log
    assert learned_negation(tmp_path)
    check_evaluation(tmp_path)


def test_a_worker_under_parameter_servers_is_restarted(prepared, tmp_path):
    shape = {"workers": 2, "parameter_servers": 1, "steps_per_execution": 3}
    job = make_job(prepared, tmp_path, strategy="parameter_server", epochs=20, **shape)
    process = start_task(job, tmp_path)
    wait_for((tmp_path / "checkpoints" / "checkpoint").exists, process, tmp_path)
    task_of(process, "worker", 0).send_signal(signal.SIGKILL)
    code = process.wait(timeout=300)
    log = (tmp_path / "log").read_text()
    assert code == 0, log
    assert "worker 0 was killed (SIGKILL); restarting it" in log
    assert learned_negation(tmp_path)
    check_evaluation(tmp_path)
    figures = summary(tmp_path)
    assert (figures["processes"], figures["steps_per_epoch"]) == (4, 16)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.exhaustive
def test_a_full_disk_while_checkpointing_is_one_line(prepared, tmp_path):
    """No file may grow beyond 40 kB here, as if the disk were full; the checkpoint is larger."""
    job = make_job(prepared, tmp_path, epochs=2)
    limit = (40_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    process = start_task(
        job, tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    )
    assert process.wait(timeout=120) == 1
    last = (tmp_path / "log").read_text().strip().splitlines()[-1]
    assert "checkpoints: the checkpoint of step 16 cannot be written (" in last
    assert "free space there and run again" in last
    assert not (tmp_path / "model").exists()
