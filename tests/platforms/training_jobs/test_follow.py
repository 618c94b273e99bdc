"""What a step makes of the answers of a cluster about its job: a script of looks for each case."""

import logging
import re
import signal as signals
import threading
from unittest import mock

import pytest
import urllib3
from kubernetes.client.exceptions import ApiException

from core.errors import InputError
from platforms.training_jobs import kubernetes, logs, problems
from platforms.training_jobs.client import Unreachable
from platforms.training_jobs.job import JobFailed
from platforms.training_jobs.kinds import JOBSET, TFJOB
from platforms.training_jobs.pods import Pod
from tests.platforms.training_jobs.manifests import JOB_FILE, make_job, make_settings, pod_with
from tests.waiting import wait

JOB = make_job(strategy="multi_worker_mirrored", workers=2)
NAME = JOBSET.make_manifest(JOB, JOB_FILE, make_settings())["metadata"]["name"]


def pod(replica, phase="Running", code=None, *, number=1, reason="", problem=""):
    """Return a pod; `number` counts the pods of a replica."""
    time = f"2026-01-01T00:00:{number:02}Z"
    name, uid = f"{NAME}-{replica.replace(' ', '-')}", f"{replica} {number}"
    return Pod(name, uid, replica, phase, code, reason, time, time, problem)


def event(reason, message, kind="Job", uid=""):
    of = {"kind": kind, "name": f"{NAME}-worker-0", "uid": uid}
    return {"involvedObject": of, "reason": reason, "message": message}


def refusal(message, kind="Job"):
    return event("FailedCreate", message, kind)


RUNNING = [pod("chief"), pod("worker 0")]


class Look:
    """The state of a job at one moment."""

    def __init__(self, pods=(), end=None, message="why", *, events=(), error=None, **status):
        ended = {"type": end, "status": "True", "message": message}
        conditions = [{"type": "Failed", "status": "False"}, ended] if end else []
        counts = [{"name": "any", "active": 1}]
        self.pods, self.events, self.error = list(pods), list(events), error
        self.status = {"conditions": conditions, "replicatedJobsStatus": counts, **status}


class Script:
    """A client whose answers are a script: each request for the job shows the next look.

    Attributes:
      logs: name of a pod -> the parts of its log, an exception for a broken connection.
      changes: changes of the metadata of the job.
    """

    namespace = "ml"

    def __init__(self, *looks, kind=JOBSET, logs=None, changes=None):
        self.kind, self.logs, self.changes = kind, logs or {}, changes or {}
        self.manifest = kind.make_manifest(JOB, JOB_FILE, make_settings())
        self._looks, self._look = list(looks), Look()
        self.deleted, self.created = 0, 0

    def get(self, name):
        if self.deleted == self.created:
            return None
        if self._looks:
            self._look = self._looks.pop(0)
        if self._look.error:
            raise self._look.error
        metadata = {**self.manifest["metadata"], "uid": str(self.created), **self.changes}
        return {**self.manifest, "metadata": metadata, "status": self._look.status}

    def create(self, manifest):
        self.created += 1
        return {**manifest, "metadata": {"uid": str(self.created)}}

    def delete(self, name, seconds=None):
        self.deleted += 1

    def pods(self, job):
        return self._look.pods

    def warnings(self, job):
        return self._look.events

    def log(self, pod):
        parts = self.logs.get(pod, [])
        return Response(parts.pop(0) if parts else [])


class Response:
    def __init__(self, parts):
        self._parts = parts

    def stream(self, amount):
        for part in self._parts:
            if isinstance(part, Exception):
                raise part
            yield part

    def close(self):
        pass


def run(*looks, progress=str, is_done=True, timeout=60.0, refused=60.0, **script):
    """Follow a job to the end of the script; return the client."""
    return follow(Script(*looks, **script), progress, is_done, timeout, refused)


def follow(script, progress=str, is_done=True, timeout=60.0, refused=60.0):
    settings = make_settings(timeout_seconds=timeout, poll_seconds=0.001)
    replaced = {"is_done": lambda _: is_done, "last_checkpoint": lambda _: progress()}
    with mock.patch.multiple(kubernetes, REFUSED_SECONDS=refused, **replaced):
        kubernetes.run(script, script.manifest, JOB, settings)
    return script


def line(text, second=0):
    return f"2026-01-01T00:00:{second:02}.1Z {text}\n".encode()


def failing(code, *texts):
    """Return a look at a job that failed with a worker, and the logs of its pods."""
    failed = pod("worker 0", "Failed", code)
    return Look([pod("chief"), failed], "Failed"), {failed.name: [[*map(line, texts)]]}


# A replica that fails.


def test_a_failure_names_the_replica_its_exit_code_and_its_last_lines(log):
    texts = [*(f"line {i}" for i in range(30)), "ValueError: no such thing", "bye"]
    look, written = failing(1, *texts)
    with pytest.raises(JobFailed) as caught:
        run(look, logs=written)
    assert str(caught.value) == (
        f"JobSet {NAME} in namespace ml failed: worker 0 ended with exit code 1: ValueError: no "
        "such thing; run again to continue from the last checkpoint"
    )
    [record] = [each for each in log.records if each.levelno == logging.ERROR]
    assert record.getMessage().splitlines() == ["The last lines of worker 0:", *texts[-20:]]


def test_a_wrong_setting_is_the_line_that_the_training_printed():
    setting, record = "training.epochs: 0 is too few", "I1121 19:26:21.000000 1 task.py:1] over"
    look, written = failing(2, setting, record)
    with pytest.raises(InputError, match=rf"^{re.escape(setting)}$"):
        run(look, logs=written)


def test_the_error_line_is_the_end_of_a_traceback_before_other_lines():
    texts = ["Fatal sounds", "a.b.UnavailableError: gone", "", "a peer's Error: 14", "x"]
    assert logs.error_line(texts) == "a.b.UnavailableError: gone"
    assert logs.error_line(["F Check failed: a", "x"]) == "F Check failed: a"


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ([pod("chief", "Failed", 1), pod("worker 0", "Failed", 2)], "worker 0 .* code 2"),
        ([pod("chief", "Failed", 138), pod("worker 0", "Failed", 1)], "worker 0 .* code 1"),
        ([pod("chief", "Failed", 138), pod("worker 0", "Failed", 137)], "worker 0 .* code 137"),
        ([pod("worker 0", "Failed", 137, reason="OOMKilled")], "increase cluster.resources"),
        ([], "failed: why$"),
    ],
    ids=["setting", "error", "kill", "memory", "no pods"],
)
def test_the_error_names_the_replica_that_most_likely_caused_it(pods, message):
    with pytest.raises(JobFailed, match=message):
        run(Look(pods, "Failed"))


def test_a_lost_worker_is_named_beside_the_one_that_failed_of_it(log):
    lost = [pod("chief"), pod("worker 0", "Failed", 137)]
    again = [pod("chief", "Failed", 1), pod("worker 0", number=2)]
    with pytest.raises(
        JobFailed, match=r"chief ended with exit code 1.*; before that worker 0 ended with .* 137"
    ):
        run(Look(RUNNING), Look(lost), Look(again, "Failed"))
    assert f"{NAME}: worker 0 was restarted" in log.text


# A replica that is restarted.


def test_a_worker_that_was_replaced_before_the_first_look_counts_as_restarted(log):
    pods = [pod("chief"), pod("worker 0", "Failed", 137), pod("worker 0", number=2)]
    run(Look(pods), Look(pods, "Completed"))
    assert f"{NAME}: worker 0 was restarted" in log.text


def test_a_replica_that_is_always_killed_without_progress_is_named_before_those_that_lose_it(
    monkeypatch,
):
    monkeypatch.setattr(kubernetes, "MAX_RESTARTS", 2)
    looks = [
        Look([pod("chief", "Failed", 138, number=i), pod("worker 0", "Failed", 137, number=i)])
        for i in range(1, 6)
    ]
    run(*looks, Look([], "Completed"), progress=iter("abcdefgh").__next__)
    run(*looks[:3], Look([], "Completed"))
    with pytest.raises(
        JobFailed, match=r"than 2 times .*: worker 0 ended with exit code 137, chief lost"
    ):
        run(*looks)


def test_a_chief_that_is_lost_when_the_others_have_ended_is_not_waited_for(log):
    done = pod("worker 0", "Succeeded", 0, number=5)
    assert run(Look([pod("chief"), done]), Look([pod("chief", number=9), done])).deleted == 1


def test_a_chief_that_is_lost_after_the_end_of_the_first_worker_is_not_waited_for(log):
    done = [pod("worker 0", "Succeeded", 0, number=5), pod("worker 1", "Succeeded", 0, number=12)]
    assert run(Look([pod("chief"), *done]), Look([pod("chief", number=9), *done])).deleted == 1


def test_a_chief_that_succeeded_is_enough(log):
    run(Look([pod("chief", "Succeeded", 0), pod("worker 0", "Failed", 1)], "Failed"))
    assert "why, but the training had ended" in log.text


def test_a_tfjob_that_failed_with_an_evicted_pod_is_started_again(log):
    """Version 1.9.3 of the training operator fails a TFJob if one of its pods is deleted."""
    evicted = Look(RUNNING, "Failed", "TFJob x has failed because 1 Worker replica(s) failed.")
    again = Look([pod("chief", number=2), pod("worker 0", number=2)])
    script = run(Look(RUNNING), evicted, evicted, again, Look([], "Succeeded"), kind=TFJOB)
    assert (script.created, script.deleted) == (2, 1)
    assert "starting it again" in log.text and "worker 0 was restarted" in log.text
    evicted.pods = [pod("worker 0", "Failed", 1)]
    with pytest.raises(JobFailed, match="worker 0 ended with exit code 1"):
        run(evicted, kind=TFJOB)


READY = [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "True"}]
SILENT = [READY[0], {"type": "Ready", "status": "False"}]
DELETED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


@pytest.mark.parametrize(
    ("phase", "conditions", "reason"),
    [
        ("Running", SILENT, "NodeNotReady"),
        ("Running", [*SILENT, DELETED], "DeletionByTaintManager"),
        ("Running", READY, ""),
        ("Failed", [*SILENT, DELETED], ""),
    ],
)
def test_a_pod_of_a_silent_node_is_named_with_what_is_waited_for(log, phase, conditions, reason):
    item = {**pod_with(None, "x"), "spec": {"nodeName": "n1"}}
    item["status"] = {"phase": phase, "conditions": conditions}
    run(Look([Pod.read(item, "worker 0", "x")]), Look([], "Completed"))
    text = f"{NAME}: worker 0 is lost ({reason}): the job waits until node n1 has ended pod pod, or"
    assert (text in log.text) == bool(reason)


# Replicas that do not start.


def blocked(reason):
    return Look([pod("chief"), pod("worker 0", "Pending", problem=f"does not run yet: {reason}")])


MISSING = RUNNING[:1]
MOUNT = event("FailedMount", "no such volume", "Pod", "worker 0 1")


@pytest.mark.parametrize(
    ("look", "why", "temporary"),
    [
        (Look(MISSING, events=[refusal('serviceaccount "trainer" not found')]), "trainer", False),
        (Look(MISSING, events=[refusal("exceeded quota: pods")]), "exceeded quota: pods", True),
        (
            Look(replicatedJobsStatus=None, events=[refusal("no services", "JobSet")]),
            f"JobSet {NAME}-worker-0 reports FailedCreate: no services",
            False,
        ),
        (blocked("ImagePullBackOff: x:1"), "worker 0 does not run yet: ImagePull", False),
        (blocked('Unschedulable: persistentvolumeclaim "x" not found'), "persistent", False),
        (blocked("Unschedulable: 3 Insufficient gpu"), "does not run yet: Unsched", True),
        (blocked("SchedulingGated: blocked"), "SchedulingGated: blocked", True),
        (Look([pod("worker 0", "Pending")], events=[MOUNT]), "run yet: FailedMount: no", False),
        (Look([], "Suspended"), "JobSet is Suspended: why", True),
        (Look(replicatedJobsStatus=None), "check that the JobSet controller runs", False),
    ],
)
def test_a_replica_that_does_not_start_is_reported(log, monkeypatch, look, why, temporary):
    """A reason that may end by itself ends the job only at its timeout."""
    monkeypatch.setattr(problems, "_USUAL_SECONDS", 0.01)
    with pytest.raises(JobFailed) as caught:
        run(look, **({"timeout": 0.3} if temporary else {"refused": 0.1}))
    message = str(caught.value)
    assert why in message and why in log.text
    assert message.endswith(f"; see kubectl describe jobset {NAME} -n ml")
    assert ("did not end within" in message) == temporary
    assert "\n" not in message


def test_a_refusal_that_has_ended_does_not_count_later(log):
    refused = Look(MISSING, events=[refusal("serviceaccount")])
    later = Look(RUNNING, events=[refusal("another")])
    run(refused, *[later] * 60, refused, Look(RUNNING, "Completed"), refused=0.05)
    assert "another" not in log.text


UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "a", "message": "b"}
PULL, USUAL = ({"waiting": {"reason": each}} for each in ("ErrImagePull", "PodInitializing"))


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"initContainerStatuses": [{"state": PULL}]}, "ErrImagePull: "),
        ({"containerStatuses": [{"name": "x", "state": USUAL}]}, ""),
        ({"conditions": [UNSCHEDULED]}, "a: b"),
    ],
)
def test_the_reason_why_a_pod_does_not_run_is_read(status, why):
    pending = {**pod_with(None, "x"), "status": {"phase": "Pending", **status}}
    problem = Pod.read(pending, "chief", "x").problem
    assert problem == (f"does not run yet: {why}" if why else "")


def test_the_end_of_a_pod_is_that_of_its_training_and_not_of_a_proxy_beside_it():
    ended = pod_with(2, "x")
    proxy = {"name": "istio-proxy", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    statuses = ended["status"]["containerStatuses"]
    for order in ([proxy, *statuses], [*statuses, proxy]):
        found = {**ended, "status": {**ended["status"], "containerStatuses": order}}
        assert Pod.read(found, "chief", "x").exit_code == 2


def test_the_event_of_a_pod_that_has_got_a_node_is_outdated(log):
    outdated = event("FailedScheduling", "no nodes", "Pod", "worker 0 1")
    looks = [Look([*MISSING, pod("worker 0", "Pending")], events=[outdated])] * 9
    run(*looks, Look(RUNNING, "Completed"))
    assert "FailedScheduling" not in log.text


@pytest.mark.parametrize("request_", ["pods", "warnings"])
def test_without_a_permission_no_job_is_created(monkeypatch, request_):
    script, error = Script(Look(RUNNING)), InputError("cannot list")
    monkeypatch.setattr(script, request_, mock.Mock(side_effect=error))
    with pytest.raises(InputError, match="cannot list"):
        follow(script)
    assert script.created == 0


# The job itself.


GONE = {"deletionTimestamp": "now"}


@pytest.mark.parametrize(
    ("second", "changes", "error", "message", "deleted"),
    [
        (
            Look(RUNNING),
            {},
            JobFailed,
            r"within 0.000138889 hours \(cluster.training_timeout_ho",
            1,
        ),
        (Look(error=SystemExit(143)), {}, SystemExit, "143", 1),
        (Look(error=KeyboardInterrupt("^C")), {}, KeyboardInterrupt, "C", 1),
        (Look(error=Unreachable("for 300 s")), {}, Unreachable, "for 300 s", 0),
        (Look(RUNNING), {"uid": "another"}, JobFailed, "was deleted by another program", 0),
        (Look(RUNNING), GONE, JobFailed, "was deleted by another program", 0),
    ],
)
def test_a_timeout_or_a_signal_deletes_the_job(second, changes, error, message, deleted):
    script = Script(Look(RUNNING), second, changes=changes)
    with pytest.raises(error, match=message):
        follow(script, timeout=0.5)
    assert script.deleted == deleted


def test_a_second_sigterm_does_not_interrupt_the_deletion():
    before, script = signals.getsignal(signals.SIGTERM), Script(Look(RUNNING))
    delete = script.delete

    def delete_after_sigterm(name, seconds):
        signals.raise_signal(signals.SIGTERM)
        delete(name)

    script.delete = delete_after_sigterm
    script.pods = lambda _: signals.raise_signal(signals.SIGTERM)
    with pytest.raises(SystemExit, match="143"):
        follow(script)
    assert (script.deleted, signals.getsignal(signals.SIGTERM)) == (1, before)


@pytest.mark.parametrize(
    ("found", "is_done", "repeated"),
    [
        (Look(RUNNING), True, False),
        (Look([], "Complete"), True, False),
        (Look([], "Completed"), False, True),
        (Look([], "Failed"), True, True),
    ],
    ids=["runs", "succeeded", "succeeded without a model", "failed"],
)
def test_a_job_of_an_earlier_attempt(found, is_done, repeated):
    script = Script(found, Look([], "Completed"))
    script.created = 1
    follow(script, is_done=is_done)
    assert (script.created, script.deleted) == ((2, 1) if repeated else (1, 0))


def test_an_earlier_job_that_is_never_removed_is_an_error():
    script = Script(Look(RUNNING), changes=GONE)
    script.created = 1
    with pytest.raises(JobFailed, match="is not deleted; see kubectl describe jobset"):
        follow(script, refused=0.05)


# Logs.


def test_a_log_whose_connection_breaks_is_copied_once_and_no_thread_is_left(log):
    before = {*threading.enumerate()}
    name = pod("worker 0").name
    broken = urllib3.exceptions.ProtocolError("broken")
    first = [line("a", 1) + line("b", 1)[:9], line("b", 1)[9:], line("step 1\rstep 2", 2), broken]
    rest = [line("a", 1) + line("b", 1), line("step 1\rstep 2", 2) + line("c", 3) + b"x"]
    looks = [Look([pod("worker 0")]) for _ in range(20)]
    end = Look([pod("worker 0", "Succeeded", 0)], "Completed")
    run(*looks, end, logs={name: [first, rest]})
    shown = [each for each in log.messages if each.startswith("[worker 0]")]
    assert shown == [f"[worker 0] {text}" for text in ("a", "b", "step 2", "c", "x")]
    wait(lambda: not [each for each in {*threading.enumerate()} - before if "log of" in each.name])


def test_lines_whose_times_are_not_in_order_are_copied_once(log):
    """Kubernetes reads standard output and standard error separately."""
    broken = urllib3.exceptions.ProtocolError("broken")
    lines = line("a", 1) + line("c", 3) + line("b", 2)
    logs = {pod("worker 0").name: [[lines, broken], [lines + line("d", 4)]]}
    looks = [Look([pod("worker 0")]) for _ in range(20)]
    run(*looks, Look([pod("worker 0", "Succeeded", 0)], "Completed"), logs=logs)
    shown = [each for each in log.messages if each.startswith("[worker 0]")]
    assert shown == [f"[worker 0] {text}" for text in "acbd"]


def test_a_log_without_permission_is_named_once(log):
    looks = [Look([pod("worker 0")]) for _ in range(9)]
    denied = [[ApiException(403, "no permission")] for _ in looks]
    run(*looks, Look([], "Completed"), logs={pod("worker 0").name: denied})
    assert log.text.count("The log of worker 0 cannot be read: no permission") == 1
