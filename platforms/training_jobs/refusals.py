"""The reasons why replicas of a job do not start, with their remedies."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from absl import logging

from platforms.training_jobs.client import Forbidden, JobClient
from platforms.training_jobs.kind import ExpectedPod
from platforms.training_jobs.pods import Event, Pod

_USUAL_SECONDS = 30.0
"""Seconds in which a controller usually creates the pods of a job, and a node starts a pod."""
_REFUSED = re.compile("FailedCreate|CreationFailed")
"""In the reasons of the controllers' events: FailedCreatePod, HeadlessServiceCreationFailed."""
_REFUSED_BY = "is refused by Kubernetes:"
_PREFIX = re.compile(r"^(\(combined from similar events\): )?Error creating: ")
_MOST_CHARACTERS = 600
_SUSPENDED = (
    "is suspended",
    "it starts when its queue (kubeflow.queue) admits it, see kubectl get workloads",
)

_TEMPORARY, _PERMANENT = True, False
_REMEDIES = [
    (re.compile(pattern), temporary, remedy)
    for pattern, temporary, remedy in (
        (
            r"must specify (limits|requests)",
            _PERMANENT,
            "the namespace's quota requires them: set cluster.resources.Trainer.cpu and .memory",
        ),
        (
            r"exceeded quota",
            _TEMPORARY,
            "the replica starts when the quota allows it: raise the quota, or reduce "
            "cluster.resources.Trainer",
        ),
        (
            r"(maximum|minimum) \S+ usage per|limit to request ratio",
            _PERMANENT,
            "the namespace's LimitRange does not allow this cluster.resources.Trainer",
        ),
        (
            r"violates PodSecurity",
            _PERMANENT,
            "the pods satisfy the standard `restricted` when they are submitted, so a webhook of "
            "this cluster changes them: exempt the namespace from that webhook",
        ),
        (
            r"service ?account",
            _PERMANENT,
            "create the service account, or change kubeflow.service_account",
        ),
        (
            r"persistentvolumeclaim|FailedMount|FailedAttachVolume",
            _PERMANENT,
            "create the PersistentVolumeClaim, or change kubeflow.volume",
        ),
        (
            r"^(ErrImage|ImagePull|ImageInspect|InvalidImageName|RegistryUnavailable)",
            _PERMANENT,
            "check cluster.image, and that the nodes are allowed to pull it",
        ),
        (
            r"^Unschedulable",
            _TEMPORARY,
            "the replica starts when a node satisfies cluster.resources.Trainer and "
            "kubeflow.training_pod",
        ),
        (r"^SchedulingGated", _TEMPORARY, "the replica starts when its queue admits it"),
        (
            r"admission webhook|ValidatingAdmissionPolicy",
            _PERMANENT,
            "a policy of this cluster refuses the pods: contact its administrator",
        ),
    )
]


@dataclass(frozen=True)
class Refusal:
    """A reason why replicas do not start.

    Attributes:
      replicas: the replicas, such as `worker 0, worker 1`.
      reason: the reason, from Kubernetes.
      remedy: the remedy.
      temporary: True if the replicas may start without a change by the user.
    """

    replicas: str
    reason: str
    remedy: str
    temporary: bool

    def __str__(self) -> str:
        return f"{self.replicas} {self.reason}; {self.remedy}"


class Refusals:
    """The search for the reasons why the replicas of one job do not start.

    Args:
      client: a client for the namespace of the job.
      name: the name of the job.
    """

    def __init__(self, client: JobClient, name: str):
        self._client = client
        self._kind = client.kind
        self._name = name
        self._created_at: dict[str, str] = {}
        self._pending_since: dict[str, float] = {}
        self._may_list_events = True

    def find(self, job: dict[str, Any], pods: Sequence[Pod]) -> list[Refusal]:
        """Return the current refusals; call this method each time the job is polled.

        Args:
          job: the job.
          pods: the newest pod of each replica.
        """
        for pod in pods:
            self._created_at[pod.replica] = pod.created_at
        if self._kind.suspended(job):
            return [Refusal(f"the {self._kind.title}", *_SUSPENDED, temporary=True)]
        existing = {pod.replica for pod in pods}
        # A Job keeps the failed pod that it has to replace.
        failed = {pod.replica for pod in pods if pod.failed and not pod.failed_permanently}
        expected = self._kind.expected_pods(job)
        missing = [each for each in expected if each.replica not in existing - failed]
        pending = [pod for pod in pods if not pod.started]
        self._update_times([each.replica for each in missing] + [pod.uid for pod in pending])
        return _merge([*self._of_missing(job, missing, failed), *self._of_pending(pending)])

    def _of_missing(
        self, job: dict[str, Any], missing: Sequence[ExpectedPod], failed: set[str]
    ) -> list[Refusal]:
        """Return the reasons why pods are not created."""
        no_status = not self._kind.accepted(job)
        if not missing and not no_status:
            return []
        owners = self._kind.event_owners(job)
        if not no_status:
            needed = {pod.owner for pod in missing}
            owners = [owner for owner in owners if owner in needed]
        created_at = job["metadata"].get("creationTimestamp", "")
        refused = [
            event
            for kind, name in owners
            for event in self._warnings(kind=kind, name=name)
            if _REFUSED.search(event.reason) and event.last_at >= created_at
        ]
        found = []
        for pod in missing:
            own = [event for event in refused if self._concerns(event, pod)]
            if own:
                found.append(_refusal(pod.replica, _REFUSED_BY, _newest(own).message))
            elif not no_status and pod.replica not in failed and self._is_overdue(pod.replica):
                # A queue or a gang scheduler may delay the pod for any time.
                found.append(self._unexplained(pod.replica, "has no pod", temporary=True))
        if found or not no_status:
            return found
        if refused:
            return [_refusal(f"the {self._kind.title}", _REFUSED_BY, _newest(refused).message)]
        if missing and all(self._is_overdue(pod.replica) for pod in missing):
            # Without permission to list events, a refusal looks like a missing operator.
            reason = f"has no pods: check that {self._kind.controller} runs in this cluster"
            replicas = f"the {self._kind.title}"
            return [self._unexplained(replicas, reason, temporary=not self._may_list_events)]
        return []

    def _concerns(self, event: Event, pod: ExpectedPod) -> bool:
        """Return whether an event is about a missing pod, and newer than the replica's last pod."""
        recent = event.last_at >= self._created_at.get(pod.replica, "")
        of_another = f'"{self._name}-' in event.message and not pod.is_in(event.message)
        return recent and not of_another

    def _unexplained(self, replicas: str, reason: str, *, temporary: bool) -> Refusal:
        describe = f"kubectl describe {self._kind.name} {self._name} -n {self._client.namespace}"
        remedy = f"no event contains the reason, see {describe}"
        return Refusal(replicas, reason, remedy, temporary)

    def _of_pending(self, pending: Sequence[Pod]) -> Iterator[Refusal]:
        """Yield the reasons why existing pods do not run."""
        unexplained = []
        for pod in pending:
            if pod.blocked_by:
                yield _refusal(pod.replica, "does not run yet:", pod.blocked_by)
            elif self._is_overdue(pod.uid):
                unexplained.append(pod)
        # Only for one pod, because every poll of the job repeats the request.
        for pod in unexplained[:1]:
            events = self._warnings(uid=pod.uid)
            if events:
                last = _newest(events)
                yield _refusal(pod.replica, "does not run yet:", f"{last.reason}: {last.message}")

    def _update_times(self, pending: Iterable[str]) -> None:
        now = time.monotonic()
        self._pending_since = {each: self._pending_since.get(each, now) for each in pending}

    def _is_overdue(self, replica_or_uid: str) -> bool:
        """Return whether a replica had no pod, or a pod did not run, for longer than usual."""
        return time.monotonic() - self._pending_since[replica_or_uid] > _USUAL_SECONDS

    def _warnings(self, **of: str) -> list[Event]:
        if not self._may_list_events:
            return []
        try:
            return self._client.warnings(**of)
        except Forbidden as error:
            self._may_list_events = False
            logging.warning("The reasons of refused pods are not shown: %s", error)
            return []


def _newest(events: Sequence[Event]) -> Event:
    return max(events, key=lambda event: event.last_at)


def _refusal(replica: str, verb: str, message: str) -> Refusal:
    reason = _PREFIX.sub("", message)[:_MOST_CHARACTERS].rstrip(".: ")
    for pattern, temporary, remedy in _REMEDIES:
        if pattern.search(reason):
            return Refusal(replica, f"{verb} {reason}", remedy, temporary)
    return Refusal(replica, f"{verb} {reason}", "see kubectl describe", _PERMANENT)


def _merge(refusals: Iterable[Refusal]) -> list[Refusal]:
    """Merge the refusals of several replicas for the same reason into one."""
    replicas: dict[tuple[str, str, bool], list[str]] = {}
    for each in refusals:
        replicas.setdefault((each.reason, each.remedy, each.temporary), []).append(each.replicas)
    return [
        Refusal(", ".join(names), reason, remedy, temporary)
        for (reason, remedy, temporary), names in replicas.items()
    ]
