"""The reasons why replicas of a job do not run, in the words of Kubernetes."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from absl import logging

from platforms.training_jobs.client import Forbidden, JobClient
from platforms.training_jobs.pods import Event, Pod

_USUAL_SECONDS = 30.0
"""Seconds in which a controller usually creates the pods of a job, and a node starts a pod."""
_REFUSED = re.compile("FailedCreate|CreationFailed")
"""In the reasons of the controllers' events: FailedCreatePod, HeadlessServiceCreationFailed."""
_PREFIX = re.compile(r"^(\(combined from similar events\): )?Error creating: ")
_TEMPORARY = re.compile(r"exceeded quota|SchedulingGated: |Unschedulable: (?!.*persistentvolumecl)")
_MAX_CHARACTERS = 600


class PodWarning(NamedTuple):
    """A reason why replicas do not run.

    Attributes:
      subject: the replicas, or the object that creates their pods.
      text: the reason.
      temporary: True if the replicas may start without a change by the user.
    """

    subject: str
    text: str
    temporary: bool

    def __str__(self) -> str:
        return f"{self.subject} {self.text}"


class PodWarnings:
    """The search for the reasons why the replicas of one job do not run."""

    def __init__(self, client: JobClient):
        self._client, self._kind = client, client.kind
        self._created_at: dict[str, str] = {}
        self._waiting_since: dict[str, float] = {}
        self._may_list_events = True

    def find(self, job: dict[str, Any], pods: Sequence[Pod]) -> list[PodWarning]:
        """Return the current warnings; `pods` are the newest of each replica.

        Call this method each time the job is polled.
        """
        if self._kind.suspended(job):
            queue = "is suspended; it starts when its queue admits it, see kubectl get workloads"
            return [PodWarning(f"the {self._kind.title}", queue, temporary=True)]
        self._created_at |= {pod.replica: pod.created_at for pod in pods}
        # A Job keeps the failed pod that it has to replace.
        replaced = {pod.replica for pod in pods if pod.failed and not pod.failed_permanently}
        existing = {pod.replica for pod in pods} - replaced
        missing = [each for each in self._kind.replicas(job) if each not in existing]
        pending = [pod for pod in pods if not pod.started]
        now, since = time.monotonic(), self._waiting_since
        waiting = [*missing, *(pod.uid for pod in pending)]
        self._waiting_since = {each: since.get(each, now) for each in waiting}
        overdue = {each for each, begin in since.items() if now - begin > _USUAL_SECONDS}
        late = [each for each in missing if each in overdue and each not in replaced]
        return [
            *(PodWarning(pod.replica, pod.lost_with, True) for pod in pods if pod.lost_with),
            *self._of_pending(job, pending, overdue),
            *(self._refused(job, missing) or self._unexplained(job, missing, late)),
        ]

    def _of_pending(
        self, job: dict[str, Any], pending: Sequence[Pod], overdue: set[str]
    ) -> list[PodWarning]:
        """Return the reasons why existing pods do not run."""
        replicas: dict[str, list[str]] = {}
        for pod in pending:
            reason = pod.blocked_by
            if not reason and pod.uid in overdue:
                # Such as a volume that the node cannot mount.
                events = [each for each in self._events(job) if each.uid == pod.uid]
                reason = f"{events[-1].reason}: {events[-1].message}" if events else ""
            if reason:
                replicas.setdefault(reason, []).append(pod.replica)
        return [
            _warning(", ".join(names), f"does not run yet: {reason}")
            for reason, names in replicas.items()
        ]

    def _refused(self, job: dict[str, Any], missing: Sequence[str]) -> list[PodWarning]:
        """Return the reasons why the API server refuses pods, or the services of a job."""
        if not missing and self._kind.accepted(job):
            return []
        refused = {
            f"{event.kind} {event.name}": _PREFIX.sub("", event.message)
            for event in self._events(job)
            if self._explains(event, job, missing)
        }
        return [_warning(each, f"is refused by Kubernetes: {refused[each]}") for each in refused]

    def _explains(self, event: Event, job: dict[str, Any], missing: Sequence[str]) -> bool:
        """Return whether an event explains why pods are missing, or why the job has no status."""
        # The reason of an event of a pod may be FailedCreatePodSandBox.
        if event.kind == "Pod" or not _REFUSED.search(event.reason):
            return False
        own = [each for each in missing if self._kind.owner_of(each, job) == event.name]
        if not own and self._kind.accepted(job):
            return False
        # An older event concerns an earlier pod of the replica.
        last_pods = min((self._created_at.get(each, "") for each in own or missing), default="")
        return event.last_at >= max(last_pods, job["metadata"].get("creationTimestamp", ""))

    def _unexplained(
        self, job: dict[str, Any], missing: Sequence[str], late: Sequence[str]
    ) -> list[PodWarning]:
        if late and self._kind.accepted(job):
            # A queue or a gang scheduler may delay the pod for any time.
            text = "has no pod, and no event contains the reason"
            return [PodWarning(", ".join(late), text, temporary=True)]
        if late and len(late) == len(missing):
            text = f"has no pods: check that {self._kind.controller} runs in this cluster"
            # Without permission to list events, a refusal looks like a missing controller.
            temporary = not self._may_list_events
            return [PodWarning(f"the {self._kind.title}", text, temporary)]
        return []

    def _events(self, job: dict[str, Any]) -> list[Event]:
        """Return the warnings about the job and its objects, the newest last."""
        if not self._may_list_events:
            return []
        try:
            found = self._client.warnings(job["metadata"]["name"])
        except Forbidden as error:
            self._may_list_events = False
            logging.warning("The reasons of refused pods are not shown: %s", error)
            return []
        return sorted(found, key=lambda event: event.last_at)


def _warning(subject: str, text: str) -> PodWarning:
    temporary = bool(_TEMPORARY.search(text))
    return PodWarning(subject, text[:_MAX_CHARACTERS].rstrip(".: "), temporary)
