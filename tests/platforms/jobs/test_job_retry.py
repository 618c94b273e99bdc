"""The job of a step that is retried, and of a step that is cancelled."""

import json
import signal
import subprocess
import sys

import pytest

from platforms.jobs.follow import JobFailed
from tests.platforms.jobs.ground import in_background, lines
from tests.platforms.jobs.kubelet import REPOSITORY
from tests.waiting import wait


def test_a_running_job_of_an_earlier_attempt_is_followed(ground, log):
    manifest = ground.manifest("print('I am', me)\nwait_for('end')")
    ground.client.create(manifest)
    wait(lambda: len(ground.operator.running) == 2)
    thread, raised = in_background(lambda: ground.run_manifest(manifest))
    wait(lambda: "[chief] I am chief 0" in lines(log))
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert len(ground.server.find_requests("POST", ground.path)) == 1


def test_a_job_that_succeeded_is_not_repeated(ground):
    manifest = ground.manifest()
    ground.run_manifest(manifest)
    ground.run_manifest(manifest)
    assert len(ground.server.find_requests("POST", ground.path)) == 1


def test_a_job_that_succeeded_without_a_model_is_repeated(ground):
    manifest = ground.manifest()
    ground.run_manifest(manifest)
    ground.done = False
    ground.run_manifest(manifest)
    assert len(ground.server.find_requests("POST", ground.path)) == 2


def test_a_job_that_failed_is_repeated_after_the_end_of_its_pods(ground, tmp_path, log):
    mark = tmp_path / "mark"
    # The other replica ends slowly.
    script = (
        f"if me == 'worker 0' and not os.path.exists({str(mark)!r}):\n"
        f"    open({str(mark)!r}, 'w')\n"
        "    sys.exit(1)\n"
        "def slowly(*unused):\n"
        "    time.sleep(0.5)\n"
        "    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, slowly)\n"
        "wait_for('again')\n"
    )
    manifest = ground.manifest(script)
    pods_before = []
    ground.server.on_create = lambda job: pods_before.append(list(ground.server.pods))
    with pytest.raises(JobFailed):
        ground.run_manifest(manifest)
    ground.release("again")
    ground.run_manifest(manifest)
    assert any("of an earlier attempt, which failed" in line for line in lines(log))
    assert pods_before == [[], []]


def test_a_new_job_is_created_after_the_deletion_of_the_old_one(quiet):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.jobs
    # Its pods delay the deletion.
    quiet.server.on_delete = lambda job: None
    name = job["metadata"]["name"]
    quiet.client.delete(name)
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    polls = len(quiet.server.find_requests("GET", quiet.path))
    wait(lambda: len(quiet.server.find_requests("GET", quiet.path)) > polls + 2)
    assert quiet.jobs == [job]
    del quiet.server.jobs[name]
    wait(lambda: quiet.jobs)
    quiet.server.set_condition(name, "Succeeded", "successfully completed.")
    thread.join(120)
    assert raised == []
    assert len(quiet.server.find_requests("POST", quiet.path)) == 2


def test_a_lost_response_creates_no_second_job(ground, log):
    ground.server.fail("POST", ground.path, "lose")
    ground.run("print('I am', me)")
    assert len(ground.server.find_requests("POST", ground.path)) == 2
    assert "[chief] I am chief 0" in lines(log)


# A step that is cancelled.

LAUNCHER = """
import json, sys
from absl import logging
from platforms.jobs import follow as job_run
from platforms.jobs.client import JobClient, connect
from platforms.jobs.follow import Terms
from platforms.jobs.choice import KINDS

logging.set_verbosity(logging.INFO)
manifest = json.loads(sys.argv[1])
[kind] = [kind for kind in KINDS if kind.title == manifest["kind"]]
terms = Terms(timeout_seconds=600, refused_seconds=600, poll_seconds=0.1,
              is_done=lambda: True, progress=lambda: "")
job_run.run(JobClient(connect(), kind, "ml"), manifest, terms)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, None)])
def test_a_cancelled_step_deletes_its_job(ground, number, code):
    manifest = json.dumps(ground.manifest("print('I am', me)\ntime.sleep(600)"))
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, manifest],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait(lambda: len(ground.operator.running) == 2)
        for line in launcher.stdout:
            if "I am chief" in line:
                break
        launcher.send_signal(number)
        rest, _ = launcher.communicate(timeout=120)
    finally:
        launcher.kill()
    assert code is None or launcher.returncode == code
    assert f"Deleting {ground.kind.title}" in rest
    # The launcher has requested the deletion; the pods end later.
    assert "deletionTimestamp" in str(ground.jobs) or not ground.jobs
    wait(lambda: not ground.jobs and not ground.operator.running)
