"""Run a training as a job on Kubernetes: create it or find it, follow it to its end, delete it."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import Any

from absl import logging

from core import exit_codes
from core.errors import InputError
from platforms.training_jobs.client import Forbidden, JobClient, Unreachable
from platforms.training_jobs.job import JobAborted, JobFailed, JobLimits, job_ends_with_step
from platforms.training_jobs.job_kind import SUCCEEDED, Condition
from platforms.training_jobs.logs import Logs, error_line
from platforms.training_jobs.pod_template import MAX_RESTARTS
from platforms.training_jobs.pods import Event, Pod

_SECONDS_TO_DELETE = 20.0
"""Timeout of the request to delete the job; SIGKILL follows 30 seconds after SIGTERM."""
_USUAL_SECONDS = 30.0
"""Seconds in which a controller usually creates the pods of a job."""
_REFUSED = re.compile(r"\w*(FailedCreate|CreationFailed)")
"""The reasons of controllers' events about pods and services, such as FailedCreatePod."""
_TEMPORARY = re.compile(
    r"is lost \(|is Suspended|exceeded quota|SchedulingGated: "
    r"|Unschedulable: (?!.*persistentvolumeclaim)"
)
"""Reasons why replicas do not run that may end without a change by the user."""


def run(client: JobClient, manifest: dict[str, Any], limits: JobLimits) -> None:
    """Run a job; return when it has succeeded and its logs are in the log of this process.

    A job of the same name belongs to an earlier attempt of the step. If it still runs, or succeeded
    and `limits.is_done`, this function follows it. Otherwise it deletes it and creates a new one.

    This function deletes the job after SIGTERM in the main thread, after SIGINT, and when it raises
    JobAborted, for example after a timeout. A job that its controller has failed is kept.

    Raises:
      InputError: Kubernetes or the training refuses a setting.
      JobFailed: the training failed, was refused, was deleted by somebody else, or took too long.
      Unreachable: the Kubernetes API did not respond for minutes; the job is not deleted.
      SystemExit, KeyboardInterrupt: after SIGTERM or SIGINT.
    """
    name = manifest["metadata"]["name"]
    with job_ends_with_step(lambda: _delete(client, name)):
        JobFollower(client, manifest, limits).until_end()


def _delete(client: JobClient, name: str) -> None:
    title = client.kind.title
    logging.info("Deleting %s %s", title, name)
    try:
        client.delete(name, _SECONDS_TO_DELETE)
    except (InputError, Unreachable) as error:
        logging.error("%s %s may still exist: %s", title, name, error)


class JobFollower:
    """The loop that polls a job until its end, and the state of its replicas."""

    def __init__(self, client: JobClient, manifest: dict[str, Any], limits: JobLimits):
        self._client, self._manifest, self._limits = client, manifest, limits
        self._kind, self._name = client.kind, manifest["metadata"]["name"]
        self._label = f"{self._kind.title} {self._name} in namespace {client.namespace}"
        self._describe = f"kubectl describe {self._kind.name} {self._name} -n {client.namespace}"
        self._started = time.monotonic()
        self._logs = Logs(client)
        self._pods: list[Pod] = []
        self._newest: dict[str, Pod] = {}
        self._lost: dict[str, Pod] = {}
        self._restarts: Counter[str] = Counter()
        self._last_progress = ""
        self._warnings: list[str] = []
        self._refused_since: float | None = None
        self._logged: dict[str, str] = {}

    def until_end(self) -> None:
        """Create the job or find it; return when it has ended or its training is over."""
        uid = self._create_or_find()
        while True:
            job = self._client.get(self._name)
            metadata = job["metadata"] if job else {}
            if job is None or metadata["uid"] != uid or "deletionTimestamp" in metadata:
                self._logs.finish()
                raise JobFailed(f"{self._label} was deleted by somebody else while it trained")
            may_list_pods = self._update_pods(job)
            for condition in self._kind.conditions(job)[-1:]:
                self._log_change(self._kind.title, f"is {condition.type}: {condition.message}")
            chief, end = self._kind.replicas(job)[0], self._kind.end_of(job)
            if end:
                self._logs.finish()
                if not self._only_lost_a_replica(end, chief):
                    return
                self._check_limits()
                logging.warning("%s: %s; starting it again", self._label, end.message)
                self._logs = Logs(self._client)
                uid = self._create_or_find()
                continue
            if self._trains_alone(chief):
                # The other replicas have ended, so the model exists, and the restarted chief would
                # have no peers.
                logging.warning("%s: the chief was lost when the training was over", self._label)
                _delete(self._client, self._name)
                return
            if may_list_pods:
                self._update_warnings(job)
            self._check_limits()
            time.sleep(self._limits.poll_seconds)

    def _create_or_find(self) -> str:
        """Return the uid of the job to follow, after the deletion of an earlier one that failed."""
        title, deadline = self._kind.title, time.monotonic() + self._limits.refused_seconds
        while True:
            found = self._client.get(self._name)
            if found is None:
                created = self._client.create(self._manifest)
                if created is not None:
                    logging.info("Created %s", self._label)
                    return str(created["metadata"]["uid"])
                # Another process created it, or the response to an earlier attempt was lost.
            elif "deletionTimestamp" not in found["metadata"]:
                end = self._kind.end_of(found)
                if end is None or (end.type == SUCCEEDED and self._limits.is_done()):
                    logging.info("Following %s %s of an earlier attempt", title, self._name)
                    return str(found["metadata"]["uid"])
                text = f"of an earlier attempt, which {end.type.lower()}: {end.message}"
                logging.info("Deleting %s %s %s", title, self._name, text)
                self._client.delete(self._name)
            elif time.monotonic() > deadline:
                raise JobFailed(f"{self._label} is not deleted; see {self._describe}")
            time.sleep(self._limits.poll_seconds)

    def _only_lost_a_replica(self, end: Condition, chief: str) -> bool:
        """Return whether a job that has ended has to start again; raise the error of a failure."""
        if end.type == SUCCEEDED:
            logging.info("%s succeeded", self._label)
        elif any(pod.replica == chief and pod.phase == SUCCEEDED for pod in self._pods):
            # The chief is the last replica to end, after it has written the model.
            logging.warning("%s: %s, but the training was over", self._label, end.message)
        else:
            only_losses = self._pods and not any(pod.failed_permanently for pod in self._pods)
            if only_losses and self._kind.loss and self._kind.loss in end.message:
                return True
            raise self._failure(end.message)
        return False

    def _trains_alone(self, chief: str) -> bool:
        """Return whether the chief was restarted after another replica had succeeded."""
        ended = [pod.finished_at for pod in self._pods if pod.phase == SUCCEEDED]
        restarted = [pod.created_at for pod in self._pods if pod.replica == chief]
        return bool(ended and restarted) and restarted[0] > min(ended) and self._limits.is_done()

    def _update_pods(self, job: dict[str, Any]) -> bool:
        """Read the pods and log their changes; return False without the permission to do so."""
        try:
            # Times of creation have no fractions of a second.
            pods = sorted(
                self._client.pods(job), key=lambda pod: (pod.created_at, not pod.to_replace)
            )
        except Forbidden as error:
            # The training does not depend on this permission.
            self._log_change("its pods", f"are not shown, nor their logs: {error}")
            return False
        # A Job keeps the failed pods that it has replaced.
        self._pods = list({pod.replica: pod for pod in pods}.values())
        self._logs.update(self._pods)
        for pod in pods:
            if pod.to_replace:
                self._lost[pod.replica] = pod
                # It may have been replaced before its state was read for the first time.
                self._newest.setdefault(pod.replica, pod)
        for pod in self._pods:
            before = self._newest.get(pod.replica, pod)
            self._newest[pod.replica] = pod
            if before.uid != pod.uid:
                self._count_restart(before)
            if pod.ended or pod.lost_with:
                self._log_change(pod.replica, pod.lost_with or pod.end_text)
        return True

    def _count_restart(self, lost: Pod) -> None:
        self._lost.setdefault(lost.replica, lost)
        progress = self._limits.progress()
        if progress != self._last_progress:
            self._last_progress = progress
            self._restarts.clear()
        self._restarts[lost.replica] += 1
        # Otherwise nothing in the log explains why the other replicas do not reach it.
        dns = "the DNS of the cluster may return its old address for some time, usually 30 s"
        self._log_change(lost.replica, f"was restarted; {dns}")

    def _losses(self, but: str = "") -> str:
        """Describe the last loss of each replica; those that only lost another one come last."""
        lost = sorted(self._lost.values(), key=lambda pod: pod.lost_peer)
        return ", ".join(f"{pod.replica} {pod.end_text}" for pod in lost if pod.replica != but)

    def _update_warnings(self, job: dict[str, Any]) -> None:
        self._warnings = []
        for subject, text in self._find_warnings(job).items():
            self._log_change(subject, text, logging.WARNING)
            self._warnings.append(f"{subject} {text}")
        if all(_TEMPORARY.search(warning) for warning in self._warnings):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()

    def _find_warnings(self, job: dict[str, Any]) -> dict[str, str]:
        """Return why replicas do not run: their names, or the object that creates them -> why."""
        last = self._kind.conditions(job)[-1:]
        if last and last[0].type == "Suspended":
            return {self._kind.title: f"is Suspended: {last[0].message}"}
        existing = {pod.replica for pod in self._pods if not pod.to_replace}
        missing = [each for each in self._kind.replicas(job) if each not in existing]
        pending = [pod for pod in self._pods if pod.phase == "Pending"]
        # The training operator writes no status if the API server refuses a pod or a service.
        accepted = any(job.get("status", {}).values())
        events = self._events(job) if missing or pending or not accepted else []
        found = [(pod.replica, pod.lost_with) for pod in self._pods if pod.lost_with]
        for pod in pending:
            # An event may be about a volume that the node cannot mount.
            own = [event.text for event in events or [] if event.uid == pod.uid]
            if reason := pod.blocked_by or "".join(own[-1:]):
                found.append((pod.replica, f"does not run yet: {reason}"))
        for event in events or []:
            # The reason of an event of a pod may be FailedCreatePodSandBox.
            refused = event.kind != "Pod" and _REFUSED.match(event.text)
            if refused and (missing or not accepted):
                found.append((f"{event.kind} {event.name}", f"reports {event.text}"))
        overdue = time.monotonic() - self._started > _USUAL_SECONDS
        if overdue and not (found or accepted or self._pods or events is None):
            text = f"has no pods: check that {self._kind.controller} runs in this cluster"
            found.append((self._kind.title, text))
        grouped: dict[str, list[str]] = {}
        for subject, text in found:
            grouped.setdefault(text, []).append(subject)
        return {", ".join(subjects): text for text, subjects in grouped.items()}

    def _events(self, job: dict[str, Any]) -> list[Event] | None:
        """Return the warnings about a job and its objects; None: a permission is missing."""
        try:
            return self._client.warnings(job)
        except Forbidden as error:
            self._log_change("its events", f"are not shown: {error}")
            return None

    def _log_change(self, subject: str, text: str, level: int = logging.INFO) -> None:
        """Log a text about a subject unless it is the last one about the same subject."""
        if self._logged.get(subject) != text:
            self._logged[subject] = text
            logging.log(level, "%s: %s %s", self._name, subject, text)

    def _check_limits(self) -> None:
        """Raise JobAborted if the training exceeds a limit or cannot succeed."""
        now = time.monotonic()
        reasons = "".join(f"; {warning}" for warning in self._warnings)
        describe = f"; see {self._describe}" if reasons else ""
        if now - self._started > self._limits.timeout_seconds:
            message = self._limits.timeout_message(self._label)
            raise JobAborted(message + reasons + describe)
        if self._refused_since and now - self._refused_since > self._limits.refused_seconds:
            minutes = f"{self._limits.refused_seconds / 60:g} minutes"
            raise JobAborted(f"{self._label} does not run after {minutes}{reasons}{describe}")
        if any(restarts > MAX_RESTARTS for restarts in self._restarts.values()):
            times = f"{MAX_RESTARTS} times without a new checkpoint"
            raise JobAborted(f"{self._label} was restarted {times}: {self._losses()}")

    def _failure(self, message: str) -> Exception:
        """Return the error of the replica that most likely caused the failure."""
        failed = min(
            (pod for pod in self._pods if pod.phase == "Failed"),
            key=lambda pod: (
                pod.exit_code != exit_codes.BAD_INPUT,
                not pod.failed_permanently,
                pod.lost_peer,
                pod.finished_at,
                pod.replica,
            ),
            default=None,
        )
        # An earlier loss may be the cause: the loss of one replica makes the others fail.
        losses = self._losses(failed.replica if failed else "")
        before = f"; before that {losses}" if losses else ""
        if failed is None:
            return JobFailed(f"{self._label} failed: {message}{before}")
        lines = self._logs.last_lines(failed)
        if failed.exit_code == exit_codes.BAD_INPUT and lines:
            return InputError(error_line(lines, printed=True))
        output = "\n".join(lines) or "(no output)"
        logging.error("The last lines of %s:\n%s", failed.replica, output)
        return JobFailed(
            f"{self._label} failed: {failed.replica} {failed.end_text}: {error_line(lines)}{before}"
            "; run again to continue from the last checkpoint"
        )
