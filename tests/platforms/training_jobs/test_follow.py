"""What a step makes of the answers of a cluster about its job: a script of looks for each case."""

import logging
import re
import signal as signals
import threading

import pytest
import urllib3

from core.errors import InputError
from platforms.training_jobs import kubernetes, logs, pod_warnings
from platforms.training_jobs.client import Forbidden, Unreachable
from platforms.training_jobs.job import JobFailed, JobLimits
from platforms.training_jobs.jobset import JobSet
from platforms.training_jobs.kinds import KINDS
from platforms.training_jobs.pods import Event, Pod
from platforms.training_jobs.tfjob import TFJob
from tests.platforms.training_jobs.manifests import JOB_FILE, make_job, make_settings, pod_with
from tests.waiting import wait

JOB = make_job(strategy="multi_worker_mirrored", workers=2)
MANIFEST = JobSet().make_manifest(JOB, JOB_FILE, make_settings())
NAME = MANIFEST["metadata"]["name"]
WORKER = ("Job", f"{NAME}-worker-0", "")
QUOTA = "exceeded quota: pods, requested: pods=1, used: pods=4, limited: pods=4"
ACCOUNT = 'error looking up service account ml/trainer: serviceaccount "trainer" not found'


def pod(replica, phase="Running", code=None, *, number=1, reason="", blocked_by=""):
    """Return a pod; `number` counts the pods of a replica."""
    time = f"2026-01-01T00:00:{number:02}Z"
    name = f"{NAME}-{replica.replace(' ', '-')}"
    uid = f"{replica} {number}"
    return Pod(name, uid, replica, phase, code, reason, time, time, blocked_by)


RUNNING = [pod("chief"), pod("worker 0")]


class Look:
    """The state of a job at one moment."""

    def __init__(
        self, pods=(), end=None, message="why", *, warnings=None, at="9999", error=None, **job
    ):
        conditions = [{"type": end, "status": "True", "message": message}] if end else []
        counts = [{"name": "any", "active": 1}]
        self.pods, self.warnings, self.error = list(pods), warnings or {}, error
        self.at = at
        self.status = {"conditions": conditions, "replicatedJobsStatus": counts, **job}


class Script:
    """A client whose answers are a script: each request for the job shows the next look.

    Attributes:
      deleted: the number of deletions.
      logs: name of a pod -> the parts of its log, an exception for a broken connection.
    """

    namespace = "ml"

    def __init__(self, *looks, kind=None, logs=None):
        self.kind, self.logs = kind or JobSet(), logs or {}
        self.manifest = self.kind.make_manifest(JOB, JOB_FILE, make_settings())
        self._looks, self._look = list(looks), None
        self.deleted, self.created = 0, 0
        self.forbidden = ()

    def get(self, name):
        if self.deleted == self.created:
            return None
        if self._looks:
            self._look = self._looks.pop(0)
        if self._look.error:
            raise self._look.error
        uid = str(self.created)
        job = {**self.manifest, "metadata": {"name": name, "uid": uid}}
        return {**job, "status": self._look.status}

    def create(self, manifest):
        self.created += 1
        return {**manifest, "metadata": {"uid": str(self.created)}}

    def delete(self, name, seconds=None):
        self.deleted += 1

    def pods(self, job):
        self._check("pods")
        return self._look.pods

    def warnings(self, name):
        self._check("events")
        at = self._look.at
        return [
            Event(*of, "FailedCreate", text, at)
            for of, texts in self._look.warnings.items()
            for text in texts
        ]

    def log(self, pod, since):
        self._check("log")
        parts = self.logs.get(pod, [])
        return Response(parts.pop(0) if parts else [])

    def _check(self, what):
        if what in self.forbidden:
            raise Forbidden(f"no permission for {what}")


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


def run(*looks, kind=None, logs=None, forbidden=(), progress=lambda: "", **limits):
    """Follow a job to the end of the script; return the client."""
    script = Script(*looks, kind=kind, logs=logs)
    script.forbidden = forbidden
    run_script(script, progress, **limits)
    return script


def run_script(script, progress=lambda: "", timeout_seconds=60.0, refused_seconds=60.0):
    limits = JobLimits(timeout_seconds, 0.001, lambda: True, progress, refused_seconds)
    kubernetes.run(script, script.manifest, limits)


def line(text, second=0):
    return f"2026-01-01T00:00:{second:02}.1Z {text}\n".encode()


def failing(code, text, replica="worker 0"):
    """Return a look at a job that failed with a replica, and the logs of its pods."""
    pods = [pod("chief"), pod(replica, "Failed", code)]
    return Look(pods, "Failed"), {pods[1].name: [[line(text)]]}


def test_a_failure_names_the_replica_its_exit_code_and_its_last_lines(log):
    look, texts = failing(1, "ValueError: no such thing")
    [name] = texts
    texts[name][0] += [line(f"line {i}") for i in range(30)]
    texts[name][0] += [line("ValueError: no such thing"), line("bye")]
    with pytest.raises(JobFailed) as caught:
        run(look, logs=texts)
    assert str(caught.value) == (
        f"JobSet {NAME} in namespace ml failed: worker 0 ended with exit code 1: ValueError: no "
        "such thing; run again to continue from the last checkpoint"
    )
    [record] = [each for each in log.records if each.levelno == logging.ERROR]
    title, *last = record.getMessage().splitlines()
    assert title == "The last lines of worker 0:"
    assert last == [*(f"line {i}" for i in range(12, 30)), "ValueError: no such thing", "bye"]


def test_a_wrong_setting_is_the_line_that_the_training_printed():
    look, texts = failing(2, "training.epochs: 0 is too few")
    [name] = texts
    texts[name][0].append(line("I1121 19:26:21.000000 1 task.py:1] over"))
    with pytest.raises(InputError, match=r"^training\.epochs: 0 is too few$"):
        run(look, logs=texts)


def test_the_error_line_is_the_end_of_a_traceback_before_other_lines():
    texts = ["Fatal sounds", "a.b.UnavailableError: gone", "", "a peer's Error: 14", "x"]
    assert logs.error_line(texts) == "a.b.UnavailableError: gone"
    assert logs.error_line(["F Check failed: a", "x"]) == "F Check failed: a"
    assert logs.error_line(["killed", " "]) == "killed"


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ([pod("chief", "Failed", 1), pod("worker 0", "Failed", 2)], "worker 0 .* code 2"),
        ([pod("chief", "Failed", 138), pod("worker 0", "Failed", 1)], "worker 0 .* code 1"),
        ([pod("chief", "Failed", 138), pod("worker 0", "Failed", 137)], "worker 0 was killed"),
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
        JobFailed, match=r"chief ended with exit code 1.*; before that worker 0 was ki"
    ):
        run(Look(RUNNING), Look(lost), Look(again, "Failed"))
    assert f"{NAME}: worker 0 was restarted; the DNS" in log.text


def test_a_worker_that_was_replaced_before_the_first_look_counts_as_restarted(log):
    pods = [pod("chief"), pod("worker 0", "Failed", 137), pod("worker 0", number=2)]
    run(Look(pods), Look(pods, "Completed"))
    assert f"{NAME}: worker 0 was restarted; the DNS" in log.text


def test_a_replica_that_is_always_killed_is_named_and_not_those_that_lose_it(monkeypatch):
    monkeypatch.setattr(kubernetes, "MAX_RESTARTS", 2)
    looks = [
        Look([pod("chief", "Failed", 138, number=i), pod("worker 0", "Failed", 137, number=i)])
        for i in range(1, 6)
    ]
    with pytest.raises(
        JobFailed, match="worker 0 was killed, exit code 137, again after 2 restarts"
    ):
        run(*looks)


def test_restarts_are_counted_from_the_last_progress_on(monkeypatch):
    monkeypatch.setattr(kubernetes, "MAX_RESTARTS", 1)
    looks = [Look([pod("worker 0", number=i)]) for i in range(1, 9)]
    run(*looks, Look([], "Completed"), progress=iter("abcdefgh").__next__)
    with pytest.raises(JobFailed, match="worker 0 ended, again after 1 restarts"):
        run(*looks)


def test_a_chief_that_is_lost_when_the_others_have_ended_is_not_waited_for(log):
    done = pod("worker 0", "Succeeded", 0, number=5)
    script = run(Look([pod("chief"), done]), Look([pod("chief", number=9), done]))
    assert script.deleted == 1
    assert "the chief was lost when the training was over" in log.text


def test_a_chief_that_succeeded_is_enough(log):
    run(Look([pod("chief", "Succeeded", 0), pod("worker 0", "Failed", 1)], "Failed"))
    assert "why, but the training was over" in log.text


def test_a_tfjob_that_failed_with_an_evicted_pod_is_started_again(log):
    """Version 1.9.3 of the training operator fails a TFJob if one of its pods is deleted."""
    script = run(
        Look(RUNNING),
        Look(RUNNING, "Failed", "TFJob x has failed because 1 Worker replica(s) failed."),
        Look([pod("chief", number=2), pod("worker 0", number=2)]),
        Look([], "Succeeded"),
        kind=TFJob(),
    )
    assert (script.created, script.deleted) == (2, 1)
    assert "starting it again" in log.text and "worker 0 was restarted" in log.text


def test_a_tfjob_that_failed_with_an_error_is_not_started_again():
    look, texts = failing(1, "ValueError: x")
    look.status["conditions"][0]["message"] = "1 Worker replica(s) failed."
    with pytest.raises(JobFailed, match="ValueError: x"):
        run(look, logs=texts, kind=TFJob())


# Replicas that do not start.


@pytest.mark.parametrize(
    ("why", "temporary"),
    [
        (ACCOUNT, False),
        ('violates PodSecurity "restricted:latest": seccompProfile', False),
        ("failed quota: q: must specify limits.cpu", False),
        (QUOTA, True),
    ],
)
def test_a_refused_pod_is_reported(log, why, temporary):
    text = f'Error creating: pods "{NAME}-worker-0-0-abcde" is forbidden: {why}'
    look = Look(RUNNING[:1], warnings={WORKER: [text]})
    limits = {"timeout_seconds": 0.3} if temporary else {"refused_seconds": 0.1}
    with pytest.raises(JobFailed) as caught:
        run(look, **limits)
    message = str(caught.value)
    assert f"Job {NAME}-worker-0 is refused by Kubernetes: {text[16:]}" in message
    assert message.endswith(f"; see kubectl describe jobset {NAME} -n ml")
    assert len(message.splitlines()) == 1
    assert ("did not end within" in message) == temporary
    assert [each for each in log.messages if why in each]


def test_a_refusal_that_has_ended_does_not_count_later():
    refused = Look(RUNNING[:1], warnings={WORKER: [f"Error creating: {ACCOUNT}"]})
    looks = [refused, *[Look(RUNNING)] * 60, refused]
    run(*looks, Look(RUNNING, "Completed"), refused_seconds=0.05)


@pytest.mark.parametrize(
    ("blocked_by", "temporary"),
    [
        ('ImagePullBackOff: Back-off pulling "x:1"', False),
        ("CreateContainerConfigError: image runs as root", False),
        ('Unschedulable: persistentvolumeclaim "x" not found', False),
        ("Unschedulable: 3 Insufficient nvidia.com/gpu", True),
        ("SchedulingGated: Scheduling is blocked", True),
    ],
)
def test_a_pod_that_does_not_run_is_reported(blocked_by, temporary):
    pods = [pod("chief"), pod("worker 0", "Pending", blocked_by=blocked_by)]
    limits = {"timeout_seconds": 0.3} if temporary else {"refused_seconds": 0.1}
    with pytest.raises(JobFailed, match=f"worker 0 does not run yet: {re.escape(blocked_by)}"):
        run(Look(pods), **limits)


UNSCHEDULED = {"type": "PodScheduled", "status": "False"}


def waiting(reason):
    return {"waiting": {"reason": reason}}


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"initContainerStatuses": [{"state": waiting("ErrImagePull")}]}, "ErrImagePull: "),
        ({"containerStatuses": [{"name": "x", "state": waiting("PodInitializing")}]}, ""),
        ({"conditions": [{**UNSCHEDULED, "reason": "a", "message": "b"}]}, "a: b"),
    ],
)
def test_the_reason_why_a_pod_does_not_run_is_read(status, why):
    pending = pod_with(None, "x")
    pending["status"] = {"phase": "Pending", **status}
    assert Pod.read(pending, "chief", "x").blocked_by == why


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
    read = Pod.read(item, "worker 0", "x")
    run(Look([read]), Look([], "Completed"))
    text = f"{NAME}: worker 0 is lost ({reason}): the job waits until node n1 has ended pod pod, or"
    assert (text in log.text) == bool(reason)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (127, "ended with exit code 127"),
        (128, "ended with exit code 128"),
        (133, "was killed, exit code 133"),
        (255, "ended with exit code 255"),
    ],
)
def test_only_the_code_of_a_signal_is_a_kill(code, text):
    assert Pod.read(pod_with(code, "trains"), "chief", "trains").end_text == text


def test_a_volume_that_cannot_be_mounted_is_found_in_the_events_of_the_pod(monkeypatch):
    monkeypatch.setattr(pod_warnings, "_USUAL_SECONDS", 0.01)
    waits = pod("worker 0", "Pending")
    look = Look([waits], warnings={("Pod", waits.name, waits.uid): ["Unable to mount"]})
    with pytest.raises(JobFailed, match=r"does not run yet: FailedCreate: Unable to mount"):
        run(look, refused_seconds=0.1)


def test_a_refused_service_is_reported_for_the_job():
    text = f'Error creating: services "{NAME}" is forbidden: exceeded quota: services'
    look = Look(RUNNING[:1], warnings={("JobSet", NAME, ""): [text]}, replicatedJobsStatus=None)
    with pytest.raises(JobFailed, match="is refused by Kubernetes: services"):
        run(look, timeout_seconds=0.3)


@pytest.mark.parametrize(
    ("of", "at"),
    [
        (WORKER, "2025"),
        (("Pod", f"{NAME}-worker-0-x", ""), "9999"),
        (("Job", f"{NAME}-chief-0", ""), "9999"),
    ],
)
def test_a_warning_about_another_pod_is_no_refusal_of_a_restarted_replica(log, of, at):
    lost = Look(RUNNING[:1], warnings={of: ["why"]}, at=at)
    run(Look(RUNNING), lost, Look([], "Completed"))
    assert "is refused" not in log.text


def test_a_missing_controller_is_named(monkeypatch):
    monkeypatch.setattr(pod_warnings, "_USUAL_SECONDS", 0.01)
    with pytest.raises(JobFailed, match="has no pods: check that the JobSet controller runs"):
        run(Look(replicatedJobsStatus=None), refused_seconds=0.1)


def test_a_queue_may_delay_a_job(log):
    message = "the JobSet is suspended; it starts when its queue"
    with pytest.raises(JobFailed, match=f"did not end within.*{message}"):
        run(Look([], "Suspended"), timeout_seconds=0.3, refused_seconds=0.1)
    assert "is Suspended: why" in log.text


@pytest.mark.parametrize(
    ("forbidden", "shown"),
    [
        ("pods", "Neither logs nor states"),
        ("log", "The log of chief cannot be shown"),
        ("events", "The reasons of refused pods are not shown"),
    ],
)
def test_a_step_without_a_permission_follows_the_job(log, forbidden, shown):
    run(Look(RUNNING[:1]), Look(RUNNING), Look(RUNNING, "Completed"), forbidden=[forbidden])
    assert len([each for each in log.messages if shown in each]) == 1


# The job itself.


def test_a_job_that_exceeds_its_timeout_is_deleted():
    with pytest.raises(JobFailed, match=r"within 2.77778e-05 hours \(cluster.training_timeout_ho"):
        run(Look(RUNNING), timeout_seconds=0.1)


@pytest.mark.parametrize("signal", [SystemExit(143), KeyboardInterrupt()])
def test_a_cancelled_step_deletes_its_job(signal):
    script = Script(Look(RUNNING), Look(error=signal))
    with pytest.raises(type(signal)):
        run_script(script)
    assert script.deleted == 1


def test_a_second_sigterm_does_not_interrupt_the_deletion():
    before, script = signals.getsignal(signals.SIGTERM), Script(Look(RUNNING))
    delete = script.delete

    def delete_after_sigterm(name, seconds):
        signals.raise_signal(signals.SIGTERM)
        delete(name)

    script.delete = delete_after_sigterm
    script.pods = lambda _: signals.raise_signal(signals.SIGTERM)
    with pytest.raises(SystemExit, match="143"):
        run_script(script)
    assert (script.deleted, signals.getsignal(signals.SIGTERM)) == (1, before)


@pytest.mark.parametrize("change", [{"uid": "another"}, {"deletionTimestamp": "now"}])
def test_a_job_that_somebody_deletes_is_not_followed(change):
    script = Script(Look(RUNNING))
    get = script.get

    def changed(name):
        found = get(name)
        if found:
            found["metadata"] |= change
        return found

    script.get = changed
    with pytest.raises(JobFailed, match="was deleted by somebody else"):
        run_script(script)
    assert script.deleted == 0


@pytest.mark.parametrize(
    ("found", "is_done", "repeated"),
    [
        (Look(RUNNING), True, False),
        (Look([], "Completed"), True, False),
        (Look([], "Completed"), False, True),
        (Look([], "Failed"), True, True),
    ],
    ids=["runs", "succeeded", "succeeded without a model", "failed"],
)
def test_a_job_of_an_earlier_attempt(found, is_done, repeated):
    script = Script(found, Look([], "Completed"))
    script.created = 1
    kubernetes.run(script, script.manifest, JobLimits(60.0, 0.001, lambda: is_done))
    assert (script.created, script.deleted) == ((2, 1) if repeated else (1, 0))


def test_an_unreachable_api_ends_the_step_and_not_the_training():
    script = Script(Look(RUNNING), Look(error=Unreachable("for 300 s")))
    with pytest.raises(Unreachable):
        run_script(script)
    assert script.deleted == 0


def test_a_field_that_an_older_crd_drops_is_an_error():
    script = Script()
    script.create = lambda manifest: {"metadata": {"uid": "1"}, "spec": {"network": {}}}
    with pytest.raises(JobFailed, match=r"no field spec\.failurePolicy"):
        run_script(script)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_ends_of_a_job_are_read(kind):
    good = {"tfjob": "Succeeded", "trainjob": "Complete", "jobset": "Completed"}[kind.name]
    for end, read in ((good, "Succeeded"), ("Failed", "Failed")):
        conditions = [
            {"type": "Running", "status": "False"},
            {"type": end, "status": "True", "message": "why"},
        ]
        assert kind.end_of({"status": {"conditions": conditions}}).type == read
    assert kind.end_of({}) is None


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


def test_the_log_of_a_replaced_pod_is_not_requested_from_its_successor():
    """The pods of a TFJob have the same name."""
    requests = []

    class Client:
        def log(self, pod, since):
            requests.append(pod)
            return Response([line("last")])

    copied = logs.Logs(Client())
    copied.update([pod("worker 0")])
    wait(lambda: requests)
    copied.update([pod("worker 0", "Pending", number=2)])
    copied.finish(60)
    assert len(requests) == 1 and copied.last_lines("worker 0") == ["last"]
