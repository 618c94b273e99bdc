"""Run a training as a job on Kubernetes: create it or find it, follow it to its end, delete it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from absl import logging

from core import exit_codes
from core.errors import InputError
from platforms.training_jobs.client import Forbidden, JobClient, Unreachable
from platforms.training_jobs.job import JobAborted, JobFailed, JobLimits, job_ends_with_step
from platforms.training_jobs.job_kind import SUCCEEDED, Condition
from platforms.training_jobs.logs import Logs, error_line, printed_line
from platforms.training_jobs.pod_template import MAX_RESTARTS
from platforms.training_jobs.pod_warnings import PodWarning, PodWarnings
from platforms.training_jobs.pods import Pod, latest

_SECONDS_FOR_LOGS = 15.0
"""Seconds for the rest of the logs after the end of a job."""
_SECONDS_TO_DISAPPEAR = 600.0
"""Timeout for the deletion of an earlier attempt's job, with its pods."""
_SECONDS_TO_DELETE = 20.0
"""Timeout of the request to delete the job; SIGKILL follows 30 seconds after SIGTERM."""


def run(client: JobClient, manifest: dict[str, Any], limits: JobLimits) -> None:
    """Run a job; return when it has succeeded and its logs are in the log of this process.

    A job of the same name belongs to an earlier attempt of the step. If it still runs, this
    function follows it. If it succeeded and `limits.is_done`, this function returns. Otherwise this
    function deletes the earlier job and creates a new one.

    This function deletes the job after SIGTERM in the main thread, after SIGINT, and when it raises
    JobAborted, for example after a timeout. A job that its controller has failed is kept.

    Raises:
      InputError: Kubernetes or the training refuses a setting.
      JobFailed: the training failed, was refused, was deleted by somebody else, took too long, or
        lost a replica more than MAX_RESTARTS times without progress.
      Unreachable: the Kubernetes API did not respond for minutes; the job is not deleted.
      SystemExit, KeyboardInterrupt: after SIGTERM or SIGINT.
    """
    name = manifest["metadata"]["name"]
    with job_ends_with_step(lambda: _delete(client, name)):
        JobFollower(client, manifest, limits).until_end()


def _create_or_find(client: JobClient, manifest: dict[str, Any], limits: JobLimits) -> str:
    """Return the uid of the job to follow, after the deletion of an earlier one that failed."""
    kind, name = client.kind, manifest["metadata"]["name"]
    label = f"{kind.title} {name}"
    deadline = time.monotonic() + _SECONDS_TO_DISAPPEAR
    while True:
        found = client.get(name)
        if found is None:
            created = client.create(manifest)
            if created is not None:
                logging.info("Created %s in namespace %s", label, client.namespace)
                _check_fields(created, manifest)
                return str(created["metadata"]["uid"])
            # Another process created it, or the response to an earlier attempt was lost.
        elif "deletionTimestamp" not in found["metadata"]:
            end = kind.end_of(found)
            if end is None or (end.type == SUCCEEDED and limits.is_done()):
                logging.info("Following %s of an earlier attempt", label)
                return str(found["metadata"]["uid"])
            ended = end.type.lower()
            logging.info(
                "Deleting %s of an earlier attempt, which %s: %s", label, ended, end.message
            )
            client.delete(name)
        elif time.monotonic() > deadline:
            raise JobFailed(
                f"{label} of an earlier attempt still exists {_SECONDS_TO_DISAPPEAR:.0f} s after "
                f"its deletion; see {_describe(client, name)}"
            )
        time.sleep(limits.poll_seconds)


def _check_fields(created: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Raise JobAborted if the API server dropped fields that its older CRD does not define."""
    dropped = sorted(set(manifest["spec"]) - set(created["spec"]))
    if dropped:
        raise JobAborted(
            f"{manifest['kind']} {manifest['metadata']['name']}: the CRD of this cluster has no "
            f"field spec.{dropped[0]}: update it, or change kubeflow.training_job"
        )


def _delete(client: JobClient, name: str) -> None:
    kind = client.kind
    logging.info("Deleting %s %s", kind.title, name)
    try:
        client.delete(name, _SECONDS_TO_DELETE)
    except (InputError, Unreachable) as error:
        command = f"kubectl delete {kind.name} {name} -n {client.namespace}"
        logging.error(
            "%s %s may still exist: %s; delete it with %s", kind.title, name, error, command
        )


def _describe(client: JobClient, name: str) -> str:
    return f"kubectl describe {client.kind.name} {name} -n {client.namespace}"


class JobFollower:
    """The loop that polls a job until its end, and the state of its replicas."""

    def __init__(self, client: JobClient, manifest: dict[str, Any], limits: JobLimits):
        self._client, self._kind = client, client.kind
        self._manifest, self._name = manifest, manifest["metadata"]["name"]
        self._limits = limits
        self._label = f"{self._kind.title} {self._name} in namespace {client.namespace}"
        self._started = time.monotonic()
        self._logs = Logs(client)
        self._pods: list[Pod] = []
        self._may_list_pods = True
        self._uids: dict[str, str] = {}
        self._last_progress = ""
        self._restarts: Counter[str] = Counter()
        self._lost: dict[str, Pod] = {}
        self._pod_warnings = PodWarnings(client)
        self._warnings: list[PodWarning] = []
        self._refused_since: float | None = None
        self._logged: dict[str, str] = {}

    def until_end(self) -> None:
        """Create the job or find it; return when it has ended or its training is over."""
        uid = _create_or_find(self._client, self._manifest, self._limits)
        while True:
            job = self._client.get(self._name)
            metadata = job["metadata"] if job else {}
            if job is None or metadata["uid"] != uid or "deletionTimestamp" in metadata:
                self._logs.finish(_SECONDS_FOR_LOGS)
                raise JobFailed(f"{self._label} was deleted by somebody else while it trained")
            self._update_pods(job)
            for condition in self._kind.conditions(job)[-1:]:
                text = f"is {condition.type}: {condition.message}"
                self._log_change(f"the {self._kind.title}", text)
            chief = self._kind.replicas(job)[0]
            end = self._kind.end_of(job)
            if end:
                self._logs.finish(_SECONDS_FOR_LOGS)
                if not self._only_lost_a_replica(end, chief):
                    return
                self._check_limits()
                logging.warning("%s: %s; starting it again", self._label, end.message)
                self._logs = Logs(self._client)
                _delete(self._client, self._name)
                uid = _create_or_find(self._client, self._manifest, self._limits)
                continue
            if self._trains_alone(chief):
                # The other replicas have ended, so the model exists, and the restarted chief would
                # have no peers.
                logging.warning("%s: the chief was lost when the training was over", self._label)
                _delete(self._client, self._name)
                return
            self._update_warnings(job)
            self._check_limits()
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
            if only_losses and self._kind.fails_after_loss(end):
                return True
            raise self._failure(end.message)
        return False

    def _update_pods(self, job: dict[str, Any]) -> None:
        if not self._may_list_pods:
            return
        try:
            pods = self._client.pods(job)
        except Forbidden as error:
            # The training does not depend on this permission.
            self._may_list_pods = False
            logging.warning("Neither logs nor states of the pods are shown: %s", error)
            return
        self._pods = latest(pods)
        self._logs.update(self._pods)
        for pod in pods:
            if pod.failed and not pod.failed_permanently:
                self._lost[pod.replica] = pod
                # It may have been replaced before its state was read for the first time.
                self._uids.setdefault(pod.replica, pod.uid)
        for pod in self._pods:
            if self._uids.setdefault(pod.replica, pod.uid) != pod.uid:
                self._uids[pod.replica] = pod.uid
                self._count_restart(pod.replica)
                # Otherwise nothing in the log explains why the other replicas do not reach it.
                dns = "the DNS of the cluster may return its old address for some time"
                self._log_change(pod.replica, f"was restarted; {dns}, usually 30 s")
            if pod.ended or pod.lost_with:
                self._log_change(pod.replica, pod.lost_with or pod.end_text)

    def _count_restart(self, replica: str) -> None:
        progress = self._limits.progress()
        if progress != self._last_progress:
            self._last_progress = progress
            self._restarts.clear()
        self._restarts[replica] += 1

    def _update_warnings(self, job: dict[str, Any]) -> None:
        if not self._may_list_pods:
            return
        self._warnings = self._pod_warnings.find(job, self._pods)
        for warning in self._warnings:
            self._log_change(warning.subject, warning.text, logging.WARNING)
        if all(warning.temporary for warning in self._warnings):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()

    def _log_change(self, subject: str, text: str, level: int = logging.INFO) -> None:
        """Log a text about a subject unless it is the last one about the same subject."""
        if self._logged.get(subject) != text:
            self._logged[subject] = text
            logging.log(level, "%s: %s %s", self._name, subject, text)

    def _check_limits(self) -> None:
        """Raise JobAborted if the training exceeds a limit or cannot succeed."""
        now, describe = time.monotonic(), f"; see {_describe(self._client, self._name)}"
        if now - self._started > self._limits.timeout_seconds:
            # `Logs.finish` may take many seconds, so it is not called after the timeout.
            warnings = "".join(f"; {warning}" for warning in self._warnings)
            message = self._limits.timeout_message(self._label)
            raise JobAborted(message + (warnings + describe if warnings else ""))
        if self._refused_since and now - self._refused_since > self._limits.refused_seconds:
            permanent = next(each for each in self._warnings if not each.temporary)
            minutes = self._limits.refused_seconds / 60
            raise JobAborted(
                f"{self._label}: {permanent}; timeout after {minutes:g} minutes{describe}"
            )
        if any(restarts > MAX_RESTARTS for restarts in self._restarts.values()):
            replica = min(self._restarts, key=self._blame_order)
            end = self._lost[replica].end_text if replica in self._lost else "ended"
            raise JobAborted(f"{self._label}: {replica} {end}, again after {MAX_RESTARTS} restarts")

    def _blame_order(self, replica: str) -> tuple[bool, int]:
        """Return a sort key by which the first replica is the probable cause of all restarts.

        Replicas that ended because of the loss of another one come last.
        """
        lost = self._lost.get(replica)
        return lost is not None and lost.lost_peer, -self._restarts[replica]

    def _trains_alone(self, chief: str) -> bool:
        """Return whether the chief was restarted after another replica had succeeded."""
        ended = [pod.finished_at for pod in self._pods if pod.phase == SUCCEEDED]
        restarted = [pod.created_at for pod in self._pods if pod.replica == chief]
        return bool(ended and restarted) and restarted[0] > min(ended) and self._limits.is_done()

    def _failure(self, message: str) -> Exception:
        """Return the error of the replica that most likely caused the failure."""
        failed = _root_cause(self._pods)
        if failed is None:
            return JobFailed(f"{self._label} failed: {message}{self._earlier_losses()}")
        lines = self._logs.last_lines(failed.replica)
        if failed.exit_code == exit_codes.BAD_INPUT and lines:
            return InputError(printed_line(lines))
        output = "\n".join(lines) or "(no output)"
        logging.error("The last lines of %s:\n%s", failed.replica, output)
        return JobFailed(
            f"{self._label} failed: {failed.replica} {failed.end_text}: {error_line(lines)}"
            f"{self._earlier_losses(failed.replica)}; run again to continue from the last "
            "checkpoint"
        )

    def _earlier_losses(self, failed: str = "") -> str:
        """Describe the restarted replicas except `failed`.

        One of them may be the cause of the failure: the loss of one replica makes the others fail.
        """
        losses = [
            f"{replica} "
            + (self._lost[replica].end_text if replica in self._lost else "ended and was restarted")
            for replica in {**self._lost, **self._restarts}
            if replica != failed
        ]
        return f"; before that {', '.join(losses)}" if losses else ""


def _root_cause(pods: Sequence[Pod]) -> Pod | None:
    """Return the failed pod that most likely caused the failure; None: no pod failed."""
    return min(
        (pod for pod in pods if pod.failed),
        key=lambda pod: (
            pod.exit_code != exit_codes.BAD_INPUT,
            not pod.failed_permanently,
            pod.lost_peer,
            pod.finished_at,
            pod.replica,
        ),
        default=None,
    )
