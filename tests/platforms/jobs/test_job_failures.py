"""Jobs whose training fails: the replica and the line in the error message."""

import logging
import re

import pytest

from core.errors import InputError
from platforms.jobs import follow as job_follow
from platforms.jobs import logs as job_logs
from platforms.jobs.choice import KINDS
from platforms.jobs.client import JobClient
from platforms.jobs.follow import JobFailed
from tests.platforms.jobs.ground import in_background, lines
from tests.waiting import wait


def test_a_failure_names_the_replica_its_exit_code_and_its_last_lines(ground, log):
    script = (
        "if me == 'worker 0':\n"
        "    for i in range(30): print('line', i)\n"
        "    print('ValueError: no such thing')\n"
        "    print('bye')\n"
        "    sys.exit(1)\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(JobFailed) as caught:
        ground.run(script)
    assert re.fullmatch(
        f"{ground.kind.title} amazon-reviews-[0-9a-f]{{16}} in namespace ml failed: worker 0 "
        "ended with exit code 1: ValueError: no such thing; run again to continue from the last "
        "checkpoint",
        str(caught.value),
    )
    [record] = [each for each in log.records if each.levelno == logging.ERROR]
    title, *last = record.getMessage().splitlines()
    assert title == "The last lines of worker 0:"
    expected = [f"line {i}" for i in range(12, 30)] + ["ValueError: no such thing", "bye"]
    assert last == expected
    # The failed job is kept for inspection.
    assert len(ground.jobs) == 1


def test_a_wrong_setting_is_the_line_that_the_training_printed(ground):
    script = (
        "print('training.epochs: 0 is too few', file=sys.stderr)\n"
        "print('I1121 19:26:21.000000 1 task.py:1] over', file=sys.stderr)\n"
        "sys.exit(2)"
    )
    with pytest.raises(InputError) as caught:
        ground.run(script)
    assert str(caught.value) == "training.epochs: 0 is too few"


def test_the_error_line_is_the_end_of_a_traceback_before_other_lines():
    texts = [
        "Fatal sounds",
        "Traceback:",
        "a.b.UnavailableError: gone",
        "",
        "a peer's Error: 14",
        "x",
    ]
    assert job_logs.error_line(texts) == "a.b.UnavailableError: gone"
    assert job_logs.error_line(["F Check failed: a", "x"]) == "F Check failed: a"
    assert job_logs.error_line(["killed", " "]) == "killed"


def test_a_lost_worker_is_named_beside_the_one_that_failed_of_it(ground, log):
    script = (
        "mark = os.path.join(FOLDER, 'mark')\n"
        "if me == 'worker 0' and not os.path.exists(mark):\n"
        "    open(mark, 'w')\n"
        "    print('alive')\n"
        "    wait_for('kill')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "wait_for('lost' if me == 'chief 0' else 'never')\n"
        "print('UnavailableError: lost a peer')\n"
        "sys.exit(1)"
    )
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: "[worker 0] alive" in lines(log))
    ground.release("kill")
    wait(lambda: any("worker 0 was restarted" in line for line in lines(log)))
    ground.release("lost")
    thread.join(120)
    [error] = raised
    assert isinstance(error, JobFailed)
    assert re.search("chief ended with exit code 1: Una.*; before that worker 0 ", str(error))


# Nothing is left of a failed pod of a TFJob.
@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.name != "tfjob"], ids=lambda kind: kind.name
)
def test_a_worker_that_was_replaced_before_the_first_look_counts_as_restarted(
    ground, log, monkeypatch
):
    script = (
        "mark = os.path.join(FOLDER, 'mark')\n"
        "if me == 'worker 0' and not os.path.exists(mark):\n"
        "    open(mark, 'w')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "wait_for('end')"
    )
    listed, looks = JobClient.pods, []

    def pods(client, job):
        if not looks:
            wait(lambda: ground.operator.restarts == 1 and len(ground.operator.running) == 2)
        looks.append(job)
        return listed(client, job)

    monkeypatch.setattr(JobClient, "pods", pods)
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: any("worker 0 was restarted" in line for line in lines(log)), 30)
    ground.release("end")
    thread.join(120)
    assert raised == []


def test_replicas_that_lost_a_killed_one_are_restarted_and_the_training_continues(ground, log):
    script = (
        "mark = os.path.join(FOLDER, me)\n"
        "if not os.path.exists(mark):\n"
        "    open(mark, 'w')\n"
        "    if me == 'worker 1':\n"
        "        wait_for('kill')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    wait_for('lost')\n"
        "    sys.exit(138)\n"
        "print('again', me)\n"
        "wait_for('end')"
    )
    thread, raised = in_background(lambda: ground.run(script, workers=3))
    wait(lambda: len(ground.operator.running) == 3)
    ground.release("kill")
    wait(lambda: "[worker 1] again worker 1" in lines(log))
    ground.release("lost")
    wait(lambda: {"[chief] again chief 0", "[worker 0] again worker 0"} <= set(lines(log)))
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert len(ground.server.find_requests("POST", ground.path)) == 1
    assert ground.operator.restarts == 3


def test_an_error_of_one_replica_is_no_reason_to_restart_those_that_lost_it(ground):
    script = (
        "if me == 'worker 0':\n"
        "    wait_for('fail')\n"
        "    print('NotFoundError: /data/train-0.gz')\n"
        "    sys.exit(1)\n"
        "wait_for('fail')\n"
        "print('UnavailableError: lost a peer')\n"
        "sys.exit(138)"
    )
    thread, raised = in_background(lambda: ground.run(script, workers=3))
    wait(lambda: len(ground.operator.running) == 3)
    ground.release("fail")
    thread.join(120)
    [error] = raised
    assert "worker 0 ended with exit code 1: NotFoundError: /data/train-0.gz" in str(error)


def test_a_replica_that_is_always_killed_is_named_and_not_those_that_lose_it(
    quiet, log, monkeypatch
):
    monkeypatch.setattr(job_follow, "MOST_RESTARTS", 2)
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.jobs
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    for times in range(1, 5):
        chief, worker = (
            quiet.server.add_pod(job, "chief", 0),
            quiet.server.add_pod(job, "worker", 0),
        )
        for pod, code in ((chief, 138), (worker, 137)):
            quiet.server.start_pod(pod)
            quiet.server.end_pod(pod, code)
        if times <= 3:
            looks = len(quiet.server.find_requests("GET", "/pods"))
            wait(lambda before=looks: len(quiet.server.find_requests("GET", "/pods")) > before + 2)
            quiet.server.remove_pod(chief["metadata"]["name"])
            quiet.server.remove_pod(worker["metadata"]["name"])
    thread.join(120)
    [error] = raised
    assert re.search(
        "namespace ml: worker 0 was killed, exit code 137, again after 2 r", str(error)
    )
    assert any("chief lost another replica, exit code 138" in line for line in lines(log))


def test_restarts_are_counted_from_the_last_progress_on(quiet, log, monkeypatch):
    monkeypatch.setattr(job_follow, "MOST_RESTARTS", 1)
    manifest = quiet.manifest(workers=1)
    quiet.client.create(manifest)
    [job] = quiet.jobs
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    for times in range(5):
        quiet.progress = f"checkpoint {min(times, 3)}"
        pod = quiet.server.add_pod(job, "worker", 0)
        looks = len(quiet.server.find_requests("GET", "/pods"))
        if times < 4:
            wait(lambda before=looks: len(quiet.server.find_requests("GET", "/pods")) > before + 2)
            assert thread.is_alive()
            quiet.server.remove_pod(pod["metadata"]["name"])
    thread.join(120)
    [error] = raised
    assert "worker 0 ended, again after 1 restarts" in str(error)


def test_a_chief_that_is_lost_when_the_others_have_ended_is_not_waited_for(quiet, log):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.jobs
    quiet.server.end_pod(quiet.server.add_pod(job, "worker", 0), 0)
    chief = quiet.server.add_pod(job, "chief", 0)
    chief["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    quiet.server.start_pod(chief)
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    looks = len(quiet.server.find_requests("GET", "/pods"))
    wait(lambda: len(quiet.server.find_requests("GET", "/pods")) > looks + 2)
    assert thread.is_alive()
    quiet.server.remove_pod(chief["metadata"]["name"])
    chief = quiet.server.add_pod(job, "chief", 0)
    chief["metadata"]["creationTimestamp"] = "2100-01-01T00:00:00Z"
    quiet.server.start_pod(chief)
    thread.join(120)
    assert raised == []
    assert any("the chief was lost when the training was over" in line for line in lines(log))
    assert quiet.jobs == []


def test_a_chief_that_succeeded_is_enough(quiet, log):
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.jobs
    quiet.server.end_pod(quiet.server.add_pod(job, "chief", 0), 0)
    quiet.server.end_pod(quiet.server.add_pod(job, "worker", 0), 1)
    quiet.done = False
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    wait(lambda: quiet.server.find_requests("GET", "/pods"))
    quiet.server.set_condition(job["metadata"]["name"], "Failed", "1 Worker replica(s) failed.")
    thread.join(120)
    assert raised == []
    assert any("failed., but the training was over" in line for line in lines(log))


def test_a_pod_that_is_killed_repeatedly_ends_the_training(ground, monkeypatch):
    monkeypatch.setattr(job_follow, "MOST_RESTARTS", 2)
    with pytest.raises(JobFailed, match=r"worker 0 .* again after 2 restarts"):
        ground.run("time.sleep(0.3)\nos.kill(os.getpid(), signal.SIGSEGV)", workers=1)
    wait(lambda: not ground.jobs)


def test_the_error_of_too_little_memory_names_the_setting(quiet):
    manifest = quiet.manifest(workers=1)
    quiet.client.create(manifest)
    [job] = quiet.jobs
    quiet.server.end_pod(quiet.server.add_pod(job, "worker", 0), 137, "OOMKilled")
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    wait(lambda: quiet.server.find_requests("GET", "/log"))
    quiet.server.set_condition(job["metadata"]["name"], "Failed", "1 Worker replica(s) failed.")
    thread.join(120)
    assert "worker 0 was killed, exit code 137, OOMKilled" in str(raised[0])
    assert "cluster.resources.Trainer.memory" in str(raised[0])


def test_a_failed_training_ends_without_the_condition_failed(quiet, monkeypatch):
    monkeypatch.setattr(job_follow, "_SECONDS_TO_FAIL", 0.3)
    manifest = quiet.manifest()
    quiet.client.create(manifest)
    [job] = quiet.jobs
    pod = quiet.server.add_pod(job, "chief", 0)
    quiet.server.log_of(pod).write("RuntimeError: over")
    quiet.server.end_pod(pod, 1)
    quiet.server.set_condition(job["metadata"]["name"], "Restarting", "Worker replica(s) failed.")
    with pytest.raises(JobFailed, match="chief ended with exit code 1: RuntimeError: over"):
        quiet.run_manifest(manifest)
    assert quiet.jobs == []


def test_a_failure_without_pods_has_the_message_of_the_operator(quiet):
    manifest = quiet.manifest()
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    wait(lambda: quiet.jobs)
    name = manifest["metadata"]["name"]
    quiet.server.set_condition(name, "Failed", f"Job {name} has failed because it was active long")
    thread.join(120)
    assert isinstance(raised[0], JobFailed)
    assert str(raised[0]).endswith("has failed because it was active long")
