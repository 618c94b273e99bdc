"""Kills of processes in real trainings."""

import signal

import psutil
import pytest

from tests.trainer_module.conftest import (
    check_evaluation,
    learned_negation,
    make_job,
    run_task,
    start_task,
    summary,
)
from tests.waiting import wait

pytestmark = pytest.mark.slow


def wait_for_checkpoint(process, folder):
    written = folder / "checkpoints" / "checkpoint"
    wait(lambda: written.exists() or process.poll() is not None, 400)
    assert process.poll() is None, (folder / "log").read_text()


def task_of(process, kind, index):
    """Return the process of the local cluster that runs this task."""
    [found] = [
        child
        for child in psutil.Process(process.pid).children()
        if f'{{"type": "{kind}", "index": {index}}}' in child.environ().get("TF_CONFIG", "")
    ]
    return found


def test_a_kill_ends_the_job_with_one_line_and_the_next_run_resumes(prepared, tmp_path):
    job = make_job(
        prepared,
        tmp_path,
        strategy="multi_worker_mirrored",
        workers=2,
        batch_size_per_replica=8,
        epochs=20,
        checkpoint_steps=20,
    )
    process = start_task(job, tmp_path)
    # In the middle of the second epoch of 17 steps.
    wait_for_checkpoint(process, tmp_path)
    task_of(process, "worker", 1).send_signal(signal.SIGKILL)
    assert process.wait(timeout=90) == 1
    log = (tmp_path / "log").read_text()
    [line] = [line for line in log.splitlines() if line.startswith("worker 1 was killed")]
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
    wait_for_checkpoint(process, tmp_path)
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
