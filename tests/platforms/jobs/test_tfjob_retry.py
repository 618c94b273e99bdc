"""The TFJob of a step that is retried, and of a step that is cancelled."""

import json
import signal
import subprocess
import sys

import pytest

from platforms.jobs.tfjob.follow import TFJobFailed
from tests.platforms.jobs.ground import in_background, lines
from tests.platforms.jobs.training_operator import REPOSITORY
from tests.waiting import wait


def test_a_running_tfjob_of_an_earlier_attempt_is_followed(ground, log):
    manifest = ground.manifest("print('I am', me)\nwait_for('end')")
    ground.client.create(manifest)
    wait(lambda: len(ground.operator.running) == 2)
    thread, raised = in_background(lambda: ground.run_manifest(manifest))
    wait(lambda: "[chief] I am chief 0" in lines(log))
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert len(ground.server.find_requests("POST", "/tfjobs")) == 1


def test_a_tfjob_that_succeeded_is_not_repeated(ground):
    manifest = ground.manifest()
    ground.run_manifest(manifest)
    ground.run_manifest(manifest)
    assert len(ground.server.find_requests("POST", "/tfjobs")) == 1


def test_a_tfjob_that_succeeded_without_a_model_is_repeated(ground):
    manifest = ground.manifest()
    ground.run_manifest(manifest)
    ground.done = False
    ground.run_manifest(manifest)
    assert len(ground.server.find_requests("POST", "/tfjobs")) == 2


def test_a_tfjob_that_failed_is_repeated_after_the_end_of_its_pods(ground, tmp_path, log):
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
    with pytest.raises(TFJobFailed):
        ground.run_manifest(manifest)
    ground.release("again")
    ground.run_manifest(manifest)
    assert any("of an earlier attempt, which failed" in line for line in lines(log))
    assert pods_before == [[], []]


def test_a_new_tfjob_is_created_after_the_deletion_of_the_old_one(quiet):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.tfjobs
    # Its pods delay the deletion.
    quiet.server.on_delete = lambda job: None
    name = job["metadata"]["name"]
    quiet.client.delete(name)
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    polls = len(quiet.server.find_requests("GET", "/tfjobs"))
    wait(lambda: len(quiet.server.find_requests("GET", "/tfjobs")) > polls + 2)
    assert quiet.tfjobs == [job]
    del quiet.server.tfjobs[name]
    wait(lambda: quiet.tfjobs)
    quiet.server.set_condition(name, "Succeeded", "successfully completed.")
    thread.join(120)
    assert raised == []
    assert len(quiet.server.find_requests("POST", "/tfjobs")) == 2


def test_a_lost_response_creates_no_second_tfjob(ground, log):
    ground.server.fail("POST", "/tfjobs", "lose")
    ground.run("print('I am', me)")
    assert len(ground.server.find_requests("POST", "/tfjobs")) == 2
    assert "[chief] I am chief 0" in lines(log)


# A step that is cancelled.

LAUNCHER = """
import json, sys
from absl import logging
from platforms.jobs.tfjob import run as tfjob_run
from platforms.jobs.tfjob.client import TFJobClient, connect
from platforms.jobs.tfjob.follow import Terms

logging.set_verbosity(logging.INFO)
manifest = json.loads(sys.argv[1])
terms = Terms(timeout_seconds=600, refused_seconds=600, poll_seconds=0.1,
              is_done=lambda: True, progress=lambda: "")
tfjob_run.run(TFJobClient(connect(), "ml"), manifest, terms)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, None)])
def test_a_cancelled_step_deletes_its_tfjob(ground, number, code):
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
    assert "Deleting TFJob" in rest
    # The launcher has requested the deletion; the pods end later.
    assert "deletionTimestamp" in str(ground.tfjobs) or not ground.tfjobs
    wait(lambda: not ground.tfjobs and not ground.operator.running)
