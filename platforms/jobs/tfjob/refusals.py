"""Why replicas of a TFJob do not start: Kubernetes's reason, and what to do about it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from absl import logging

from platforms.jobs.tfjob.client import Forbidden, TFJobClient
from platforms.jobs.tfjob.pods import Event, Pod, replica_name

_SECONDS_TO_BE_TAKEN = 30.0
"""Seconds in which the operator creates the pods of a TFJob, and a node starts a pod."""
_REFUSED = "FailedCreate"
"""How the reasons of the operator's events begin: FailedCreatePod, FailedCreateService."""
_REFUSED_BY = "is refused by Kubernetes:"
_PREFIX = re.compile(r"^(\(combined from similar events\): )?Error creating: ")
_LONGEST = 600

_PASSES, _STAYS = True, False
_REMEDIES = [
    (re.compile(pattern), passes, remedy)
    for pattern, passes, remedy in (
        (
            r"must specify (limits|requests)",
            _STAYS,
            "the namespace's quota requires them: set cluster.resources.Trainer.cpu and .memory",
        ),
        (
            r"exceeded quota",
            _PASSES,
            "the replica starts when the namespace has room; a larger quota, or less in "
            "cluster.resources.Trainer, makes room",
        ),
        (
            r"(maximum|minimum) \S+ usage per|limit to request ratio",
            _STAYS,
            "the namespace's LimitRange does not allow this cluster.resources.Trainer",
        ),
        (
            r"violates PodSecurity",
            _STAYS,
            "the pods satisfy the standard `restricted` when they are submitted, so a webhook of "
            "this cluster changes them: exempt the namespace from that webhook",
        ),
        (
            r"service ?account",
            _STAYS,
            "create the service account, or change kubeflow.service_account",
        ),
        (
            r"persistentvolumeclaim|FailedMount|FailedAttachVolume",
            _STAYS,
            "create the PersistentVolumeClaim, or change kubeflow.volume",
        ),
        (
            r"^(ErrImage|ImagePull|ImageInspect|InvalidImageName|RegistryUnavailable)",
            _STAYS,
            "check cluster.image, and that the nodes are allowed to pull it",
        ),
        (
            r"^Unschedulable",
            _PASSES,
            "the replica starts when a node satisfies cluster.resources.Trainer, "
            "kubeflow.node_selector and kubeflow.tolerations",
        ),
        (r"^SchedulingGated", _PASSES, "the replica starts when its queue admits it"),
        (
            r"admission webhook|ValidatingAdmissionPolicy",
            _STAYS,
            "a policy of this cluster refuses the pods: ask its administrator",
        ),
    )
]


@dataclass(frozen=True)
class Refusal:
    """What keeps replicas from starting.

    Attributes:
      who: the replicas, `worker 0, worker 1`.
      why: Kubernetes's own words.
      remedy: what to do.
      passes: whether it may pass without anybody's help.
    """

    who: str
    why: str
    remedy: str
    passes: bool

    def __str__(self) -> str:
        return f"{self.who} {self.why}; {self.remedy}"


class Refusals:
    """Finds what keeps the replicas of one TFJob from starting.

    Args:
      client: for the namespace of the TFJob.
      name, uid: of the TFJob.
    """

    def __init__(self, client: TFJobClient, name: str, uid: str):
        self._client = client
        self._name = name
        self._uid = uid
        self._created_at: dict[str, str] = {}
        self._waits_since: dict[str, float] = {}
        self._events_are_told = True

    def look(self, job: dict[str, Any], pods: Sequence[Pod]) -> list[Refusal]:
        """Return what holds at this moment; call it at each look at the TFJob.

        Args:
          job: the TFJob.
          pods: all of its pods that exist.
        """
        for pod in pods:
            self._created_at[pod.replica] = pod.created_at
        there = {pod.replica for pod in pods}
        missing = [place for place in _places(job) if place.replica not in there]
        waiting = [pod for pod in pods if not pod.started]
        self._keep_times([place.replica for place in missing] + [pod.uid for pod in waiting])
        return _merged([*self._of_missing(job, missing), *self._of_waiting(waiting)])

    def _of_missing(self, job: dict[str, Any], missing: Sequence[_Place]) -> list[Refusal]:
        """What keeps pods from being created."""
        # A pod or a service that is refused also keeps the operator from writing any condition.
        untouched = not job.get("status", {}).get("conditions")
        if not missing and not untouched:
            return []
        events = self._warnings(self._uid)
        refused = [event for event in events if event.reason.startswith(_REFUSED)]
        found = []
        for place in missing:
            about = [event for event in refused if self._is_about(event, place)]
            if about:
                found.append(_refusal(place.replica, _REFUSED_BY, _newest(about).message))
            elif not untouched and self._waits_long(place.replica):
                # A queue or a gang scheduler may hold it back, for as long as it takes.
                found.append(self._unexplained(place.replica, "has no pod", passes=True))
        if found or not untouched:
            return found
        if refused:
            return [_refusal("the TFJob", _REFUSED_BY, _newest(refused).message)]
        if missing and all(self._waits_long(place.replica) for place in missing):
            # Without its events nobody knows whether the operator is there and was refused.
            why = "has no pods: does a Kubeflow training operator v1 run in this cluster?"
            return [self._unexplained("the TFJob", why, passes=not self._events_are_told)]
        return []

    def _is_about(self, event: Event, place: _Place) -> bool:
        """Whether a replica that has no pod was refused, since it had one."""
        recent = event.last_at >= self._created_at.get(place.replica, "")
        of_another = f'"{self._name}-' in event.message and f'"{place.pod}"' not in event.message
        return recent and not of_another

    def _unexplained(self, who: str, why: str, *, passes: bool) -> Refusal:
        describe = f"kubectl describe tfjob {self._name} -n {self._client.namespace}"
        return Refusal(who, why, f"no event gives the reason, see {describe}", passes)

    def _of_waiting(self, waiting: Sequence[Pod]) -> Iterator[Refusal]:
        """What keeps pods that exist from running."""
        silent = []
        for pod in waiting:
            if pod.waits_for:
                yield _refusal(pod.replica, "does not run yet:", pod.waits_for)
            elif self._waits_long(pod.uid):
                silent.append(pod)
        # One of them is enough: the request is made again at each look.
        for pod in silent[:1]:
            events = self._warnings(pod.uid)
            if events:
                last = _newest(events)
                yield _refusal(pod.replica, "does not run yet:", f"{last.reason}: {last.message}")

    def _keep_times(self, waiting: Iterable[str]) -> None:
        now = time.monotonic()
        self._waits_since = {each: self._waits_since.get(each, now) for each in waiting}

    def _waits_long(self, who: str) -> bool:
        """Whether a replica has had no pod, or a pod has not run, for longer than is usual."""
        return time.monotonic() - self._waits_since[who] > _SECONDS_TO_BE_TAKEN

    def _warnings(self, uid: str) -> list[Event]:
        if not self._events_are_told:
            return []
        try:
            return self._client.warnings(uid)
        except Forbidden as error:
            self._events_are_told = False
            logging.warning("The reasons for pods that are refused are not shown: %s", error)
            return []


@dataclass(frozen=True)
class _Place:
    """A replica that a TFJob is to have, and the name of its pod."""

    replica: str
    pod: str


def _places(job: dict[str, Any]) -> list[_Place]:
    name = job["metadata"]["name"]
    return [
        _Place(replica_name(kind.lower(), index), f"{name}-{kind.lower()}-{index}")
        for kind, spec in job["spec"]["tfReplicaSpecs"].items()
        for index in range(spec["replicas"])
    ]


def _newest(events: Sequence[Event]) -> Event:
    return max(events, key=lambda event: event.last_at)


def _refusal(who: str, verb: str, message: str) -> Refusal:
    why = _PREFIX.sub("", message)[:_LONGEST].rstrip(".: ")
    for pattern, passes, remedy in _REMEDIES:
        if pattern.search(why):
            return Refusal(who, f"{verb} {why}", remedy, passes)
    return Refusal(who, f"{verb} {why}", "see kubectl describe", _STAYS)


def _merged(refusals: Iterable[Refusal]) -> list[Refusal]:
    """Those of several replicas for one reason become one."""
    together: dict[tuple[str, str, bool], list[str]] = {}
    for each in refusals:
        together.setdefault((each.why, each.remedy, each.passes), []).append(each.who)
    return [
        Refusal(", ".join(who), why, remedy, passes)
        for (why, remedy, passes), who in together.items()
    ]
