"""A TFJob followed to its end, with scripts that train nothing in the place of its pods."""

import json
import logging
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from components.trainer import tfjob_logs, tfjob_run
from components.trainer.tfjob_client import Patience, TFJobClient, Unreachable, connect
from components.trainer.tfjob_manifest import make_manifest
from components.trainer.tfjob_run import TFJobFailed
from preprocessing.errors import InputError
from tests.components.kubernetes_server import forbidden, status
from tests.components.test_tfjob_manifest import make_job, make_settings

REPOSITORY = str(Path(__file__).parents[2])
# Quick where nothing is wrong; what is slow here is the machine that tests share.
QUICK = Patience(give_up=60.0, first_wait=0.01, longest_wait=0.05, request=5.0, silence=0.5)
STAND_IN = """
import json, os, signal, sys, time
config = json.loads(os.environ.get("TF_CONFIG", "null"))
me = "{type} {index}".format(**config["task"]) if config else "alone"
def wait_for(word):
    while not os.path.exists(os.path.join(FOLDER, word)): time.sleep(0.01)
"""


class Ground:
    """A cluster, and TFJobs in it whose pods run a script."""

    def __init__(self, server, operator, folder):
        self.server = server
        self.operator = operator
        self.folder = folder
        self.client = TFJobClient(connect(), "ml", QUICK)
        self.done = True

    def manifest(self, script="", **training):
        training = {"strategy": "multi_worker_mirrored", "workers": 2} | training
        manifest = make_manifest(make_job(**training), "job.json", make_settings())
        for replica in manifest["spec"]["tfReplicaSpecs"].values():
            [container] = replica["template"]["spec"]["containers"]
            container["command"] = [
                sys.executable,
                "-uc",
                f"FOLDER = {str(self.folder)!r}" + STAND_IN + script,
            ]
        return manifest

    def tell(self, word):
        """Lets pods go on that `wait_for` this word: no test counts on how fast a pod is."""
        (self.folder / word).touch()

    def run(self, script="", timeout_seconds=300.0, **training):
        self.run_manifest(self.manifest(script, **training), timeout_seconds)

    def run_manifest(self, manifest, timeout_seconds=300.0):
        tfjob_run.run(
            self.client,
            manifest,
            timeout_seconds=timeout_seconds,
            poll_seconds=0.05,
            is_done=lambda: self.done,
        )

    @property
    def tfjobs(self):
        return list(self.server.tfjobs.values())


@pytest.fixture
def ground(server, operator, log, tmp_path):
    return Ground(server, operator, tmp_path)


@pytest.fixture
def quiet(server, log, tmp_path):
    """The same without an operator: what happens is up to the test."""
    return Ground(server, None, tmp_path)


def lines(log):
    return [record.getMessage() for record in log.records]


def wait(what, seconds=120):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def in_background(act):
    """A thread that does `act`, and what it raised."""
    raised = []

    def run():
        try:
            act()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised


# The way things go.


def test_every_pod_gets_its_place_and_its_log_is_shown(ground, log):
    def said():
        return sorted(line for line in lines(log) if "I am" in line)

    script = "print('I am', me, 'in', config['environment'])\nwait_for('end')"
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: len(said()) == 2)
    ground.tell("end")
    thread.join(120)
    assert raised == []
    assert said() == ["[chief] I am chief 0 in cloud", "[worker 0] I am worker 0 in cloud"]
    assert any(
        re.search("TFJob amazon-reviews-.* in namespace ml succeeded", x) for x in lines(log)
    )
    assert len(ground.tfjobs) == 1


def test_a_single_replica_has_no_cluster(ground, log):
    ground.run("print('I am', me)", workers=1)
    assert "[worker 0] I am alone" in lines(log)


def test_parameter_servers_are_ended_when_the_chief_is_done(ground, log):
    script = "print('I am', me)\nwait_for('end' if me.startswith('chief') else 'never')"
    settings = {"strategy": "parameter_server", "parameter_servers": 1}
    thread, raised = in_background(lambda: ground.run(script, **settings))
    for name in ("chief", "worker 0", "worker 1", "ps 0"):
        wait(lambda start=f"[{name}] I am {name}": any(x.startswith(start) for x in lines(log)))
    ground.tell("end")
    thread.join(120)
    assert raised == []
    wait(lambda: not ground.operator.running)


def test_a_killed_pod_is_started_again_and_the_training_goes_on(ground, log):
    script = (
        "mark = os.path.join(FOLDER, 'mark')\n"
        "if me == 'worker 0' and not os.path.exists(mark):\n"
        "    open(mark, 'w')\n"
        "    print('before')\n"
        "    wait_for('kill')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "if me == 'worker 0': print('after')\n"
        "wait_for('end')"
    )
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: "[worker 0] before" in lines(log))
    ground.tell("kill")
    wait(lambda: "[worker 0] after" in lines(log))
    ground.tell("end")
    thread.join(120)
    assert raised == []
    assert any("worker 0 was started again" in line for line in lines(log))


# Failures of the training.


def test_a_failure_names_the_replica_its_exit_code_and_its_last_lines(ground, log):
    script = (
        "if me == 'worker 0':\n"
        "    for i in range(30): print('line', i)\n"
        "    print('ValueError: no such thing')\n"
        "    print('bye')\n"
        "    sys.exit(1)\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(TFJobFailed) as caught:
        ground.run(script)
    assert re.fullmatch(
        "TFJob amazon-reviews-[0-9a-f]{16} in namespace ml failed: worker 0 ended with exit code "
        "1: ValueError: no such thing; run again to continue from the last checkpoint",
        str(caught.value),
    )
    [record] = [each for each in log.records if each.levelno == logging.ERROR]
    title, *last = record.getMessage().splitlines()
    assert title == "The last lines of worker 0:"
    expected = [f"line {i}" for i in range(12, 30)] + ["ValueError: no such thing", "bye"]
    assert last == expected
    # It stays, to be looked at.
    assert len(ground.tfjobs) == 1


def test_a_wrong_setting_is_the_line_that_the_training_printed(ground):
    script = (
        "print('training.epochs: 0 is too few', file=sys.stderr)\n"
        "print('I1121 19:26:21.000000 1 task.py:1] over', file=sys.stderr)\n"
        "sys.exit(2)"
    )
    with pytest.raises(InputError) as caught:
        ground.run(script)
    assert str(caught.value) == "training.epochs: 0 is too few"


def test_the_telling_line_is_the_end_of_a_traceback_though_more_follows():
    said = [
        "Fatal sounds",
        "Traceback:",
        "a.b.UnavailableError: gone",
        "",
        "a peer's Error: 14",
        "x",
    ]
    assert tfjob_logs.telling_line(said) == "a.b.UnavailableError: gone"
    assert tfjob_logs.telling_line(["F Check failed: a", "x"]) == "F Check failed: a"
    assert tfjob_logs.telling_line(["killed", " "]) == "killed"


def test_a_lost_worker_is_named_beside_the_one_that_failed_of_it(ground, log):
    script = (
        "mark = os.path.join(FOLDER, 'mark')\n"
        "if me == 'worker 0' and not os.path.exists(mark):\n"
        "    open(mark, 'w')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "wait_for('lost' if me == 'chief 0' else 'never')\n"
        "print('UnavailableError: lost a peer')\n"
        "sys.exit(1)"
    )
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: any("worker 0 was started again" in line for line in lines(log)))
    ground.tell("lost")
    thread.join(120)
    [error] = raised
    assert isinstance(error, TFJobFailed)
    assert re.search("chief ended with exit code 1: Una.*; before that worker 0 ", str(error))


def test_a_chief_that_succeeded_is_enough(quiet, log):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.tfjobs
    quiet.server.end_pod(quiet.server.add_pod(job, "chief", 0), 0)
    quiet.server.end_pod(quiet.server.add_pod(job, "worker", 0), 1)
    quiet.done = False
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    wait(lambda: quiet.server.asked("GET", "/pods"))
    quiet.server.set_condition(job["metadata"]["name"], "Failed", "1 Worker replica(s) failed.")
    thread.join(120)
    assert raised == []
    assert any("failed., but the training was over" in line for line in lines(log))


def test_a_pod_that_is_killed_time_and_again_is_given_up(ground, monkeypatch):
    monkeypatch.setattr(tfjob_run, "MOST_RESTARTS", 2)
    with pytest.raises(TFJobFailed, match=r"worker 0 .* again after 2 restarts"):
        ground.run("time.sleep(0.3)\nos.kill(os.getpid(), signal.SIGSEGV)", workers=1)
    wait(lambda: not ground.tfjobs)


def test_memory_that_was_too_little_is_said(quiet):
    manifest = quiet.manifest(workers=1)
    quiet.client.create(manifest)
    [job] = quiet.tfjobs
    quiet.server.end_pod(quiet.server.add_pod(job, "worker", 0), 137, "OOMKilled")
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    wait(lambda: quiet.server.asked("GET", "/log"))
    quiet.server.set_condition(job["metadata"]["name"], "Failed", "1 Worker replica(s) failed.")
    thread.join(120)
    assert "worker 0 was killed, exit code 137, OOMKilled" in str(raised[0])
    assert "cluster.resources.Trainer.memory" in str(raised[0])


def test_an_operator_that_never_calls_it_failed_is_not_waited_for(quiet, monkeypatch):
    monkeypatch.setattr(tfjob_run, "_SECONDS_TO_FAIL", 0.3)
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.tfjobs
    pod = quiet.server.add_pod(job, "chief", 0)
    quiet.server.log_of(pod).write("RuntimeError: over")
    quiet.server.end_pod(pod, 1)
    quiet.server.set_condition(job["metadata"]["name"], "Restarting", "Worker replica(s) failed.")
    with pytest.raises(TFJobFailed, match="chief ended with exit code 1: RuntimeError: over"):
        quiet.run_manifest(manifest)
    assert quiet.tfjobs == []


def test_a_failure_without_pods_is_what_the_operator_says(quiet):
    manifest = quiet.manifest()
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    wait(lambda: quiet.tfjobs)
    name = manifest["metadata"]["name"]
    quiet.server.set_condition(name, "Failed", f"Job {name} has failed because it was active long")
    thread.join(120)
    assert isinstance(raised[0], TFJobFailed)
    assert str(raised[0]).endswith("has failed because it was active long")


# What happens around it.


def test_what_takes_too_long_is_deleted(ground):
    with pytest.raises(TFJobFailed, match=r"within 0.0001\d* hours \(kubeflow.training_timeout_ho"):
        ground.run("time.sleep(600)", timeout_seconds=0.5)
    wait(lambda: not ground.tfjobs and not ground.operator.running)


def test_a_pod_that_finds_no_node_is_told_with_the_schedulers_words(quiet, log):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.tfjobs
    why = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    quiet.server.add_pod(job, "chief", 0)["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    ]
    image = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "registry/x:1"'}
    quiet.server.add_pod(job, "worker", 0)["status"]["containerStatuses"] = [
        {"name": "tensorflow", "state": {"waiting": image}}
    ]
    with pytest.raises(TFJobFailed, match=r"not running: chief: Unschedulable: 0/3.*; worker 0: "):
        quiet.run_manifest(manifest, timeout_seconds=0.5)
    [chief] = [line for line in lines(log) if "chief does not run yet" in line]
    assert chief.endswith(f"Unschedulable: {why}")
    [worker] = [line for line in lines(log) if "worker 0 does not run yet" in line]
    assert worker.endswith('ImagePullBackOff: Back-off pulling image "registry/x:1"')


def test_nobody_to_take_it_up_is_told(quiet, log, monkeypatch):
    monkeypatch.setattr(tfjob_run, "_SECONDS_TO_BE_TAKEN", 0.1)
    with pytest.raises(TFJobFailed):
        quiet.run(timeout_seconds=0.5)
    assert any("no training operator has taken it up yet" in line for line in lines(log))


def test_a_tfjob_that_somebody_deletes_is_missed(ground):
    thread, raised = in_background(lambda: ground.run("time.sleep(600)"))
    wait(lambda: len(ground.operator.running) == 2)
    TFJobClient(connect(), "ml", QUICK).delete(ground.tfjobs[0]["metadata"]["name"])
    thread.join(120)
    [error] = raised
    assert "was deleted by somebody else" in str(error)


def test_trouble_with_the_api_passes(ground, log):
    thread, raised = in_background(
        lambda: ground.run("wait_for('go')\nprint('I am', me)\nwait_for('end')")
    )
    wait(lambda: len(ground.operator.running) == 2)
    overloaded = (503, status(503, "overloaded"))
    ground.server.fail("GET", "/tfjobs", overloaded, "drop", overloaded)
    ground.server.fail("GET", "/pods", (429, status(429, "slow down")), "drop")
    ground.tell("go")
    wait(lambda: {"[chief] I am chief 0", "[worker 0] I am worker 0"} <= set(lines(log)))
    ground.tell("end")
    thread.join(120)
    assert raised == []
    assert any("503 overloaded; trying again" in line for line in lines(log))


def test_an_api_that_is_gone_ends_the_step_and_not_the_training(ground):
    ground.client = TFJobClient(connect(), "ml", replace(QUICK, give_up=1.0))
    thread, raised = in_background(lambda: ground.run("time.sleep(600)"))
    wait(lambda: len(ground.operator.running) == 2)
    ground.server.fail("GET", "/tfjobs", (503, status(503, "overloaded")), "always")
    thread.join(120)
    assert isinstance(raised[0], Unreachable)
    assert len(ground.operator.running) == 2
    assert not ground.server.asked("DELETE", "/tfjobs")


def test_a_step_that_may_see_no_pods_waits_for_the_end_without(ground, log):
    ground.server.fail("GET", "/pods", forbidden("list", "pods"), "always")
    ground.run("print('I am', me)")
    assert len([line for line in lines(log) if "Neither logs nor states" in line]) == 1


def test_a_step_that_may_read_no_logs_waits_for_the_end_without(ground, log):
    ground.server.fail("GET", "/log", forbidden("get", "pods/log"), "always")
    script = "wait_for('end' if me.startswith('chief') else 'never')\nsys.exit(1)"
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: len([line for line in lines(log) if "cannot be shown" in line]) == 2)
    ground.tell("end")
    thread.join(120)
    [error] = raised
    assert isinstance(error, TFJobFailed)
    assert "chief ended with exit code 1: it said nothing" in str(error)


def test_a_log_that_breaks_off_is_read_on_and_shown_once(quiet, log):
    manifest = quiet.manifest(workers=1)
    quiet.client.create(manifest)
    [job] = quiet.tfjobs
    pod = quiet.server.add_pod(job, "worker", 0)
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    written = quiet.server.log_of(pod)
    for i in range(3):
        written.write(f"line {i}", seconds_ago=10)
    quiet.server.start_pod(pod)
    written.break_off()
    wait(lambda: "[worker 0] line 2" in lines(log))
    # Quiet for longer than a request waits.
    asked = len(quiet.server.asked("GET", "/log"))
    wait(lambda: len(quiet.server.asked("GET", "/log")) > asked + 1)
    written.write("step 1\rstep 2\rstep 3")
    written.write("line 3")
    wait(lambda: "[worker 0] line 3" in lines(log))
    written.break_off()
    written.write("line 4")
    quiet.server.end_pod(pod, 0)
    quiet.server.set_condition(job["metadata"]["name"], "Succeeded", "successfully completed.")
    thread.join(120)
    assert raised == []
    shown = [line for line in lines(log) if line.startswith("[worker 0]")]
    texts = ["line 0", "line 1", "line 2", "step 3", "line 3", "line 4"]
    assert shown == [f"[worker 0] {text}" for text in texts]


def test_lines_of_one_moment_are_all_shown():
    position = tfjob_logs._Position()
    first = [
        b"2026-11-21T19:26:21.1Z a",
        b"2026-11-21T19:26:21.12Z b",
        b"2026-11-21T19:26:21.12Z c",
    ]
    assert [position.take(line) for line in first] == ["a", "b", "c"]
    assert position.since_seconds() >= 60
    again = [*first, b"2026-11-21T19:26:21.12Z d", b"2026-11-21T19:26:22Z e"]
    assert [position.take(line) for line in again] == [None, None, None, "d", "e"]


def test_no_thread_is_left(ground):
    before = set(threading.enumerate())
    ground.run("print('I am', me)")
    wait(lambda: not [t for t in set(threading.enumerate()) - before if "log of" in t.name])


# What a step does that was tried before.


def test_a_running_tfjob_of_an_earlier_try_is_followed(ground, log):
    manifest = ground.manifest("print('I am', me)\nwait_for('end')")
    ground.client.create(manifest)
    wait(lambda: len(ground.operator.running) == 2)
    thread, raised = in_background(lambda: ground.run_manifest(manifest))
    wait(lambda: "[chief] I am chief 0" in lines(log))
    ground.tell("end")
    thread.join(120)
    assert raised == []
    assert len(ground.server.asked("POST", "/tfjobs")) == 1


def test_one_that_succeeded_is_enough(ground):
    manifest = ground.manifest()
    ground.run_manifest(manifest)
    ground.run_manifest(manifest)
    assert len(ground.server.asked("POST", "/tfjobs")) == 1


def test_one_that_succeeded_without_a_model_is_made_anew(ground):
    manifest = ground.manifest()
    ground.run_manifest(manifest)
    ground.done = False
    ground.run_manifest(manifest)
    assert len(ground.server.asked("POST", "/tfjobs")) == 2


def test_one_that_failed_is_made_anew_once_its_pods_are_gone(ground, tmp_path, log):
    mark = tmp_path / "mark"
    # The other one is slow to end.
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
    ground.tell("again")
    ground.run_manifest(manifest)
    assert any("of an earlier try, which failed" in line for line in lines(log))
    assert pods_before == [[], []]


def test_one_that_is_being_deleted_is_waited_for(quiet):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.tfjobs
    # Its pods hold it up.
    quiet.server.on_delete = lambda job: None
    name = job["metadata"]["name"]
    quiet.client.delete(name)
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    asked = len(quiet.server.asked("GET", "/tfjobs"))
    wait(lambda: len(quiet.server.asked("GET", "/tfjobs")) > asked + 2)
    assert quiet.tfjobs == [job]
    del quiet.server.tfjobs[name]
    wait(lambda: quiet.tfjobs)
    quiet.server.set_condition(name, "Succeeded", "successfully completed.")
    thread.join(120)
    assert raised == []
    assert len(quiet.server.asked("POST", "/tfjobs")) == 2


def test_an_answer_that_is_lost_makes_no_second_tfjob(ground, log):
    ground.server.fail("POST", "/tfjobs", "lose")
    ground.run("print('I am', me)")
    assert len(ground.server.asked("POST", "/tfjobs")) == 2
    assert "[chief] I am chief 0" in lines(log)


# A step that is cancelled.

LAUNCHER = """
import json, sys
from absl import logging
from components.trainer import tfjob_run
from components.trainer.tfjob_client import TFJobClient, connect

logging.set_verbosity(logging.INFO)
manifest = json.loads(sys.argv[1])
tfjob_run.run(TFJobClient(connect(), "ml"), manifest, timeout_seconds=600, poll_seconds=0.1,
              is_done=lambda: True)
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, None)])
def test_a_step_that_is_told_to_end_leaves_no_tfjob(ground, number, code):
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
    # It was asked for before the launcher ended; the pods take their time.
    assert "deletionTimestamp" in str(ground.tfjobs) or not ground.tfjobs
    wait(lambda: not ground.tfjobs and not ground.operator.running)
