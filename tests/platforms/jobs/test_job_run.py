"""A job that is followed to its end, also when the API or the cluster fails."""

import re
import threading
from dataclasses import replace

import pytest

from platforms.jobs import logs as job_logs
from platforms.jobs.client import JobClient, Unreachable, connect
from platforms.jobs.follow import JobFailed
from tests.platforms.jobs.ground import QUICK, in_background, lines
from tests.platforms.jobs.kubernetes_http import forbidden, status
from tests.waiting import wait


def test_every_pod_gets_its_place_and_its_log_is_shown(ground, log):
    def pod_lines():
        return sorted(line for line in lines(log) if "I am" in line)

    script = "print('I am', me)\nwait_for('end')"
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: len(pod_lines()) == 2)
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert pod_lines() == ["[chief] I am chief 0", "[worker 0] I am worker 0"]
    assert any(
        re.search(f"{ground.kind.title} amazon-reviews-.* in namespace ml succeeded", x)
        for x in lines(log)
    )
    assert len(ground.jobs) == 1


def test_a_single_replica_has_no_cluster(ground, log):
    ground.run("print('I am', me)", workers=1)
    assert "[worker 0] I am alone" in lines(log)


def test_parameter_servers_are_ended_when_the_chief_is_done(ground, log):
    script = "print('I am', me)\nwait_for('end' if me.startswith('chief') else 'never')"
    settings = {"strategy": "parameter_server", "parameter_servers": 1}
    thread, raised = in_background(lambda: ground.run(script, **settings))
    for name in ("chief", "worker 0", "worker 1", "ps 0"):
        wait(lambda start=f"[{name}] I am {name}": any(x.startswith(start) for x in lines(log)))
    ground.release("end")
    thread.join(120)
    assert raised == []
    wait(lambda: not ground.operator.running)


def test_a_killed_pod_is_restarted_and_the_training_continues(ground, log):
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
    ground.release("kill")
    wait(lambda: "[worker 0] after" in lines(log))
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert any("worker 0 was restarted" in line for line in lines(log))


# Failures of the API or the cluster.


def test_a_job_that_exceeds_its_timeout_is_deleted(ground):
    with pytest.raises(JobFailed, match=r"within 0.0001\d* hours \(cluster.training_timeout_ho"):
        ground.run("time.sleep(600)", timeout_seconds=0.5)
    wait(lambda: not ground.jobs and not ground.operator.running)


def test_a_job_that_somebody_deletes_is_an_error(ground):
    thread, raised = in_background(lambda: ground.run("time.sleep(600)"))
    wait(lambda: len(ground.operator.running) == 2)
    JobClient(connect(), ground.kind, "ml", QUICK).delete(ground.jobs[0]["metadata"]["name"])
    thread.join(120)
    [error] = raised
    assert "was deleted by somebody else" in str(error)


def test_transient_errors_of_the_api_are_retried(ground, log):
    thread, raised = in_background(
        lambda: ground.run("wait_for('go')\nprint('I am', me)\nwait_for('end')")
    )
    wait(lambda: len(ground.operator.running) == 2)
    overloaded = (503, status(503, "overloaded"))
    ground.server.fail("GET", ground.path, overloaded, "drop", overloaded)
    ground.server.fail("GET", "/pods", (429, status(429, "slow down")), "drop")
    ground.release("go")
    wait(lambda: {"[chief] I am chief 0", "[worker 0] I am worker 0"} <= set(lines(log)))
    ground.release("end")
    thread.join(120)
    assert raised == []
    assert any("503 overloaded; retrying" in line for line in lines(log))


def test_an_unreachable_api_ends_the_step_and_not_the_training(ground):
    ground.client = JobClient(connect(), ground.kind, "ml", replace(QUICK, timeout=1.0))
    thread, raised = in_background(lambda: ground.run("time.sleep(600)"))
    wait(lambda: len(ground.operator.running) == 2)
    ground.server.fail("GET", ground.path, (503, status(503, "overloaded")), "always")
    thread.join(120)
    assert isinstance(raised[0], Unreachable)
    assert len(ground.operator.running) == 2
    assert not ground.server.find_requests("DELETE", ground.path)


def test_a_step_without_permission_to_list_pods_follows_the_job(ground, log):
    ground.server.fail("GET", "/pods", forbidden("list", "pods"), "always")
    ground.run("print('I am', me)")
    assert len([line for line in lines(log) if "Neither logs nor states" in line]) == 1


def test_a_step_without_permission_to_read_logs_follows_the_job(ground, log):
    ground.server.fail("GET", "/log", forbidden("get", "pods/log"), "always")
    script = "wait_for('end' if me.startswith('chief') else 'never')\nsys.exit(1)"
    thread, raised = in_background(lambda: ground.run(script))
    wait(lambda: len([line for line in lines(log) if "cannot be shown" in line]) == 2)
    ground.release("end")
    thread.join(120)
    [error] = raised
    assert isinstance(error, JobFailed)
    assert "chief ended with exit code 1: no output" in str(error)


def test_a_log_whose_connection_breaks_is_copied_once(quiet, log):
    manifest = quiet.manifest(workers=1)
    quiet.client.create(manifest)
    [job] = quiet.jobs
    pod = quiet.server.add_pod(job, "worker", 0)
    thread, raised = in_background(lambda: quiet.run_manifest(manifest))
    written = quiet.server.log_of(pod)
    for i in range(3):
        written.write(f"line {i}", seconds_ago=10)
    quiet.server.start_pod(pod)
    written.break_off()
    wait(lambda: "[worker 0] line 2" in lines(log))
    # The log has no new line for longer than the timeout of a request.
    polls = len(quiet.server.find_requests("GET", "/log"))
    wait(lambda: len(quiet.server.find_requests("GET", "/log")) > polls + 1)
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
    position = job_logs._Position()
    first = [
        b"2026-11-21T19:26:21.1Z a",
        b"2026-11-21T19:26:21.12Z b",
        b"2026-11-21T19:26:21.12Z c",
    ]
    assert [position.advance(line) for line in first] == ["a", "b", "c"]
    assert position.since_seconds() >= 60
    again = [*first, b"2026-11-21T19:26:21.12Z d", b"2026-11-21T19:26:22Z e"]
    assert [position.advance(line) for line in again] == [None, None, None, "d", "e"]


def test_no_thread_is_left(ground):
    before = set(threading.enumerate())
    ground.run("print('I am', me)")
    wait(lambda: not [t for t in set(threading.enumerate()) - before if "log of" in t.name])
