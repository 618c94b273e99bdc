"""A pod of a job, and an event about it, with the fields that this package uses."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from typing import Any, NamedTuple

from platforms.training_jobs.pod_template import PERMANENT
from trainer_module.cluster import exits

_SIGNALS = frozenset(signal.Signals)
_SECONDS = len("2026-11-22T09:00:00")
_USUAL_WAITS = ("ContainerCreating", "PodInitializing")


class Pod(NamedTuple):
    """One pod at one moment. Times are in RFC 3339.

    Attributes:
      name: name of the pod; its successor may have the same name, but has another uid.
      replica: the replica that runs in the pod, `chief` or `worker 1`.
      phase: Kubernetes's phase: Pending, Running, Succeeded, Failed or Unknown.
      exit_code: exit code of the training; None: it has not ended, or the pod was evicted.
      reason: Kubernetes's reason for the end of the pod, such as OOMKilled or Evicted.
      blocked_by: reason why the pod does not run; empty if it runs or starts normally.
      lost_with: why Kubernetes gives up the running pod, and for what its replacement waits; else
        empty.
    """

    name: str
    uid: str
    replica: str
    phase: str
    exit_code: int | None
    reason: str
    created_at: str
    finished_at: str
    blocked_by: str
    lost_with: str = ""

    @classmethod
    def read(cls, pod: dict[str, Any], replica: str, container: str) -> Pod:
        metadata, status = pod["metadata"], pod.get("status", {})
        containers = status.get("containerStatuses") or []
        states = [each.get("state", {}) for each in containers if each["name"] == container]
        ended = (states[0] if states else {}).get("terminated", {})
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            replica=replica,
            phase=status.get("phase", "Unknown"),
            exit_code=ended.get("exitCode"),
            reason=status.get("reason") or ended.get("reason") or _disruption(status),
            created_at=metadata.get("creationTimestamp") or "",
            finished_at=ended.get("finishedAt") or "",
            blocked_by=_blocked_by(status),
            lost_with=_lost_with(pod),
        )

    @property
    def started(self) -> bool:
        return self.phase == "Running" or self.ended

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def failed(self) -> bool:
        """True after an error, a kill or an eviction."""
        return self.phase == "Failed"

    @property
    def failed_permanently(self) -> bool:
        """True if the pod failed and its controller does not replace it."""
        return self.failed and self.exit_code in PERMANENT

    @property
    def lost_peer(self) -> bool:
        """True if the training ended because of the loss of another replica."""
        return self.exit_code == exits.LOST_PEER

    @property
    def end_text(self) -> str:
        """A description of the pod's end, which follows the name of the replica in a message."""
        if self.lost_peer:
            return f"lost another replica, exit code {self.exit_code}"
        if self.exit_code is None:
            return f"was terminated ({self.reason or 'no reason from Kubernetes'})"
        reason = f", {self.reason}" if self.reason not in ("", "Error", "Completed") else ""
        if self.reason == "OOMKilled":
            reason += " (increase cluster.resources.Trainer.memory)"
        verb = "was killed," if self.exit_code - 128 in _SIGNALS else "ended with"
        return f"{verb} exit code {self.exit_code}{reason}"


class Event(NamedTuple):
    """A warning about an object; `last_at` is in RFC 3339 without a fraction."""

    kind: str
    name: str
    uid: str
    reason: str
    message: str
    last_at: str

    @classmethod
    def read(cls, event: dict[str, Any]) -> Event:
        """Read an Event of the Kubernetes API."""
        last_at = (
            event.get("lastTimestamp")
            or (event.get("series") or {}).get("lastObservedTime")
            or event.get("eventTime")
            or event["metadata"].get("creationTimestamp")
            or ""
        )
        of = event["involvedObject"]
        return cls(
            kind=of.get("kind", ""),
            name=of.get("name", ""),
            uid=of.get("uid", ""),
            reason=event.get("reason") or "",
            message=" ".join((event.get("message") or "").split()),
            last_at=f"{last_at[:_SECONDS]}Z",
        )


def latest(pods: Iterable[Pod]) -> list[Pod]:
    """Return the newest pod of each replica: a Job keeps the failed pods that it has replaced."""
    # Times of creation have no fractions of a second.
    by_age = sorted(pods, key=lambda pod: (pod.created_at, not pod.failed))
    return list({pod.replica: pod for pod in by_age}.values())


def _disruption(status: dict[str, Any]) -> str:
    """Return the reason of a disruption, such as PreemptionByScheduler; empty without one."""
    for condition in status.get("conditions") or []:
        if condition["type"] == "DisruptionTarget" and condition["status"] == "True":
            return str(condition.get("reason") or "")
    return ""


def _lost_with(pod: dict[str, Any]) -> str:
    status = pod.get("status", {})
    states = {each["type"]: each["status"] for each in status.get("conditions") or []}
    reason = _disruption(status)
    # Of these conditions the control plane changes only Ready, when the node does not respond.
    if (states.get("Ready"), states.get("ContainersReady")) == ("False", "True"):
        reason = reason or "NodeNotReady"
    if status.get("phase") != "Running" or not reason:
        return ""
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    return (
        f"is lost ({reason}): the job waits until node {node} has ended pod {name}, or until the "
        "Node object is deleted"
    )


def _blocked_by(status: dict[str, Any]) -> str:
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    # A cluster may add init containers to every pod, for a proxy for example.
    for statuses in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(statuses) or []:
            waiting = container.get("state", {}).get("waiting") or {}
            if waiting.get("reason") and waiting["reason"] not in _USUAL_WAITS:
                return f"{waiting['reason']}: {waiting.get('message', '')}"
    return ""
