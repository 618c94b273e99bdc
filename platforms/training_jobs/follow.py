"""Run a job: create it or find that of an earlier attempt, follow it to its end, and delete it."""

from __future__ import annotations

import enum
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from absl import logging

from core import exit_codes
from core.errors import InputError
from platforms.training_jobs.client import Forbidden, JobClient, Unreachable
from platforms.training_jobs.kind import SUCCEEDED
from platforms.training_jobs.logs import Logs, error_line, printed_line
from platforms.training_jobs.pod_template import MOST_RESTARTS
from platforms.training_jobs.pods import Pod, latest
from platforms.training_jobs.refusals import Refusal, Refusals
from platforms.training_jobs.step import sigterm_raises

_SECONDS_FOR_LOGS = 15.0
"""Seconds for the rest of the logs after the end of a job."""
_SECONDS_TO_DISAPPEAR = 600.0
"""Timeout for the deletion of an earlier attempt's job, with its pods."""
_SECONDS_TO_DELETE = 20.0
"""Timeout of the request to delete the job; SIGKILL follows 30 seconds after SIGTERM."""


_NEW_ADDRESS = "the DNS of the cluster may return its old address for some time, usually 30 s"


class JobFailed(RuntimeError):
    """A training that failed or exceeded a limit; the message is one line."""


class JobAborted(JobFailed):
    """A training that cannot succeed within its limits; its job still exists."""


@dataclass(frozen=True)
class Terms:
    """The limits of a job, and the functions that observe its training.

    Attributes:
      timeout_seconds: timeout of the job from now on.
      refused_seconds: timeout of replicas that are refused for a permanent reason, such as a
        missing service account. A temporary reason, such as a quota, has no timeout of its own.
      poll_seconds: seconds between two requests for the state of the job.
      is_done: returns whether the result of the training exists.
      progress: returns a text that changes with the progress of the training. A training is aborted
        after more than MOST_RESTARTS restarts of a replica without progress.
    """

    timeout_seconds: float
    refused_seconds: float
    poll_seconds: float
    is_done: Callable[[], bool]
    progress: Callable[[], str]


def run(client: JobClient, manifest: dict[str, Any], terms: Terms) -> None:
    """Run a job; return when it has succeeded and its logs are in the log of this process.

    A job of the same name belongs to an earlier attempt of the step. If it still runs, this
    function follows it. If it succeeded and `terms.is_done`, this function returns. Otherwise this
    function deletes the earlier job and creates a new one.

    This function deletes the job after SIGTERM in the main thread, after SIGINT, and when it raises
    JobAborted, for example after a timeout. A job that its controller has failed is kept.

    Args:
      client: a client for the namespace of the manifest.
      manifest: the job to create.
      terms: the limits of the job.

    Raises:
      InputError: Kubernetes or the training refuses a setting.
      JobFailed: the training failed, was refused, was deleted by somebody else, or took too
        long.
      Unreachable: the Kubernetes API did not respond for minutes; the job is not deleted.
      SystemExit, KeyboardInterrupt: after SIGTERM or SIGINT.
    """
    name = manifest["metadata"]["name"]
    with sigterm_raises():
        try:
            follow = _Follow(client, name, terms)
            end = _End.RESTART
            while end == _End.RESTART:
                end = follow.until_end(_create_or_find(client, manifest, terms))
                if end != _End.KEEP:
                    _delete(client, name)
        except (SystemExit, KeyboardInterrupt, JobAborted):
            _delete(client, name)
            raise


def _create_or_find(client: JobClient, manifest: dict[str, Any], terms: Terms) -> str:
    """Return the uid of the job to follow."""
    name = manifest["metadata"]["name"]
    label = f"{client.kind.title} {name}"
    while True:
        found = client.get(name)
        if found is None:
            created = client.create(manifest)
            if created is not None:
                logging.info("Created %s in namespace %s", label, client.namespace)
                _check_fields(created, manifest)
                return str(created["metadata"]["uid"])
            # Another process created it, or the response to an earlier attempt was lost.
            found = client.get(name)
        if found is None:
            time.sleep(terms.poll_seconds)
            continue
        if "deletionTimestamp" not in found["metadata"]:
            end = client.kind.end_of(found)
            if end is None or (end.type == SUCCEEDED and terms.is_done()):
                logging.info("Following %s of an earlier attempt", label)
                return str(found["metadata"]["uid"])
            logging.info(
                "Deleting %s of an earlier attempt, which %s: %s",
                label,
                end.type.lower(),
                end.message,
            )
            client.delete(name)
        _wait_for_deletion(client, name, terms.poll_seconds)


def _check_fields(created: dict[str, Any], manifest: dict[str, Any]) -> None:
    """Raise JobAborted if the API server dropped fields that its older CRD does not define."""
    dropped = sorted(set(manifest["spec"]) - set(created["spec"]))
    if dropped:
        raise JobAborted(
            f"{manifest['kind']} {manifest['metadata']['name']}: the CRD of this cluster has no "
            f"field spec.{dropped[0]}: update it, or change kubeflow.training_job"
        )


def _wait_for_deletion(client: JobClient, name: str, poll_seconds: float) -> None:
    deadline = time.monotonic() + _SECONDS_TO_DISAPPEAR
    while client.get(name) is not None:
        if time.monotonic() > deadline:
            raise JobFailed(
                f"{client.kind.title} {name} of an earlier attempt still exists "
                f"{_SECONDS_TO_DISAPPEAR:.0f} s after its deletion; see kubectl describe "
                f"{client.kind.name} {name} -n {client.namespace}"
            )
        time.sleep(poll_seconds)


def _delete(client: JobClient, name: str) -> None:
    logging.info("Deleting %s %s", client.kind.title, name)
    try:
        client.delete(name, _SECONDS_TO_DELETE)
    except (InputError, Unreachable) as error:
        logging.error(
            "%s %s may still exist: %s; delete it with kubectl delete %s %s -n %s",
            client.kind.title,
            name,
            error,
            client.kind.name,
            name,
            client.namespace,
        )


class _End(enum.Enum):
    """What happens to a job whose training is over, or which lost a replica."""

    KEEP = "it has ended"
    DELETE = "its training is over, but it has not ended"
    RESTART = "it failed because it lost a replica"


class _Follow:
    """The state of the loop that polls a job until its end."""

    def __init__(self, client: JobClient, name: str, terms: Terms):
        self._client = client
        self._kind = client.kind
        self._name = name
        self._terms = terms
        self._last_progress = ""
        self._started = time.monotonic()
        self._logs = Logs(client)
        self._pods: list[Pod] = []
        self._may_list_pods = True
        self._uids: dict[str, str] = {}
        self._restarts: Counter[str] = Counter()
        self._lost: dict[str, Pod] = {}
        self._refusals = Refusals(client, name)
        self._refused: list[Refusal] = []
        self._refused_since: float | None = None
        self._logged: dict[str, str] = {}

    def until_end(self, uid: str) -> _End:
        """Follow the job with a uid; return when it has ended or its training is over.

        Raises:
          InputError, JobFailed, Unreachable: see `run`.
          JobAborted: the job still exists, and the caller must delete it.
        """
        while True:
            job = self._client.get(self._name)
            if (
                job is None
                or job["metadata"]["uid"] != uid
                or "deletionTimestamp" in job["metadata"]
            ):
                self._logs.finish(_SECONDS_FOR_LOGS)
                raise JobFailed(f"{self._label} was deleted by somebody else while it trained")
            self._update_pods(job)
            self._log_condition(job)
            end = self._kind.end_of(job)
            if end is not None:
                self._logs.finish(_SECONDS_FOR_LOGS)
                if end.type == SUCCEEDED:
                    logging.info("%s succeeded", self._label)
                elif self._chief_succeeded(job):
                    # The chief is the last replica to end, after it has written the model.
                    logging.warning("%s: %s, but the training was over", self._label, end.message)
                elif self._kind.fails_after_loss(end) and self._has_only_losses():
                    self._check_limits()
                    logging.warning("%s: %s; starting it again", self._label, end.message)
                    self._logs = Logs(self._client)
                    return _End.RESTART
                else:
                    self._fail(f"failed: {end.message}")
                return _End.KEEP
            if self._chief_trains_alone(job):
                # The other replicas have ended, so the model exists, and the restarted chief would
                # have no peers.
                logging.warning("%s: the chief was lost when the training was over", self._label)
                return _End.DELETE
            self._update_refusals(job)
            self._check_limits()
            time.sleep(self._terms.poll_seconds)

    @property
    def _label(self) -> str:
        return f"{self._kind.title} {self._name} in namespace {self._client.namespace}"

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
                self._log_change(pod.replica, f"was restarted; {_NEW_ADDRESS}")
            if pod.ended:
                self._log_change(pod.replica, pod.end_text)

    def _count_restart(self, replica: str) -> None:
        progress = self._terms.progress()
        if progress != self._last_progress:
            self._last_progress = progress
            self._restarts.clear()
        self._restarts[replica] += 1

    def _update_refusals(self, job: dict[str, Any]) -> None:
        if not self._may_list_pods:
            return
        self._refused = self._refusals.find(job, self._pods)
        for refusal in self._refused:
            text = f"{refusal.reason}; {refusal.remedy}"
            self._log_change(refusal.replicas, text, logging.WARNING)
        if all(refusal.temporary for refusal in self._refused):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()

    def _log_condition(self, job: dict[str, Any]) -> None:
        conditions = self._kind.conditions(job)
        if conditions:
            last = conditions[-1]
            self._log_change(f"the {self._kind.title}", f"is {last.type}: {last.message}")

    def _log_change(self, subject: str, text: str, level: int = logging.INFO) -> None:
        """Log a text about a subject unless it is the last one about the same subject."""
        if self._logged.get(subject) != text:
            self._logged[subject] = text
            logging.log(level, "%s: %s %s", self._name, subject, text)

    def _check_limits(self) -> None:
        """Raise JobAborted if the training exceeds a limit or cannot succeed."""
        now = time.monotonic()
        if now - self._started > self._terms.timeout_seconds:
            # `Logs.finish` may take many seconds, so it is not called after the timeout.
            raise JobAborted(
                f"{self._label} did not end within {self._terms.timeout_seconds / 3600:g} hours "
                "(cluster.training_timeout_hours); run again to continue from the last checkpoint"
                + "".join(f"; {refusal}" for refusal in self._refused)
            )
        if self._refused_since and now - self._refused_since > self._terms.refused_seconds:
            permanent = next(each for each in self._refused if not each.temporary)
            minutes = self._terms.refused_seconds / 60
            raise JobAborted(f"{self._label}: {permanent}; timeout after {minutes:g} minutes")
        if any(restarts > MOST_RESTARTS for restarts in self._restarts.values()):
            replica = min(self._restarts, key=self._blame_order)
            end = self._lost[replica].end_text if replica in self._lost else "ended"
            raise JobAborted(
                f"{self._label}: {replica} {end}, again after {MOST_RESTARTS} restarts"
                + _memory_advice(end)
            )

    def _blame_order(self, replica: str) -> tuple[bool, int]:
        """Return a sort key by which the first replica is the probable cause of all restarts.

        Replicas that ended because of the loss of another one come last.
        """
        lost = self._lost.get(replica)
        return lost is not None and lost.lost_peer, -self._restarts[replica]

    def _has_only_losses(self) -> bool:
        """Return whether pods exist, and none of them failed with an error."""
        return bool(self._pods) and not any(pod.failed_permanently for pod in self._pods)

    def _chief_succeeded(self, job: dict[str, Any]) -> bool:
        chief = self._kind.chief_of(job)
        return any(pod.replica == chief and pod.phase == SUCCEEDED for pod in self._pods)

    def _chief_trains_alone(self, job: dict[str, Any]) -> bool:
        """Return whether the chief was restarted after another replica had succeeded."""
        chief = self._kind.chief_of(job)
        ended = [pod.finished_at for pod in self._pods if pod.phase == SUCCEEDED]
        restarted = [pod.created_at for pod in self._pods if pod.replica == chief]
        return bool(ended and restarted) and restarted[0] > min(ended) and self._terms.is_done()

    def _fail(self, message: str) -> None:
        """Raise the error of the replica that most likely caused the failure."""
        failed = _root_cause(self._pods)
        if failed is None:
            raise JobFailed(f"{self._label} {message}{self._earlier_losses()}")
        lines = self._logs.last_lines(failed.replica)
        if failed.exit_code == exit_codes.BAD_INPUT and lines:
            raise InputError(printed_line(lines))
        logging.error(
            "The last lines of %s:\n%s", failed.replica, "\n".join(lines) or "(no output)"
        )
        raise JobFailed(
            f"{self._label} failed: {failed.replica} {failed.end_text}: {error_line(lines)}"
            f"{_memory_advice(failed.end_text)}{self._earlier_losses(failed.replica)}; run again "
            "to continue from the last checkpoint"
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
    failed = [pod for pod in pods if pod.failed]
    return min(
        failed,
        key=lambda pod: (
            pod.exit_code != exit_codes.BAD_INPUT,
            not pod.failed_permanently,
            pod.lost_peer,
            pod.finished_at,
            pod.replica,
        ),
        default=None,
    )


def _memory_advice(end: str) -> str:
    return ", increase cluster.resources.Trainer.memory" if "OOMKilled" in end else ""
