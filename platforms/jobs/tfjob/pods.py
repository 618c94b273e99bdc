"""A pod of a TFJob and the events about it, as far as following the training takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from platforms.jobs.tfjob.manifest import CONTAINER
from trainer_module.distribute import lost_peer
from trainer_module.distribute.cluster import CHIEF

JOB_LABEL = "training.kubeflow.org/job-name"
TYPE_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"

_FIRST_RETRYABLE = 128
_SECONDS = len("2026-11-22T09:00:00")
_USUAL_WAITS = ("ContainerCreating", "PodInitializing")


@dataclass(frozen=True)
class Pod:
    """One pod at one moment.

    Attributes:
      name: of the pod; that of its successor is the same.
      uid: of this pod alone.
      replica: what it is in the cluster, `chief` or `worker 1`.
      phase: Kubernetes's: Pending, Running, Succeeded, Failed, Unknown.
      exit_code: of the training; None: it has not ended, or the pod was evicted.
      reason: why it ended, in Kubernetes's word, such as OOMKilled or Evicted.
      created_at: when it was created, in RFC 3339.
      finished_at: when it ended, in RFC 3339.
      waits_for: why it does not run yet, if for nothing usual.
    """

    name: str
    uid: str
    replica: str
    phase: str
    exit_code: int | None
    reason: str
    created_at: str
    finished_at: str
    waits_for: str

    @classmethod
    def read(cls, pod: dict[str, Any]) -> Pod:
        """From what the Kubernetes API says of it."""
        metadata, status = pod["metadata"], pod.get("status", {})
        labels = metadata.get("labels", {})
        kind, index = labels.get(TYPE_LABEL, ""), labels.get(INDEX_LABEL, "")
        containers = status.get("containerStatuses") or []
        state: dict[str, Any] = next(
            (each.get("state", {}) for each in containers if each["name"] == CONTAINER), {}
        )
        terminated = state.get("terminated", {})
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            replica=replica_name(kind, index),
            phase=status.get("phase", "Unknown"),
            exit_code=terminated.get("exitCode"),
            reason=status.get("reason") or terminated.get("reason", ""),
            created_at=metadata.get("creationTimestamp") or "",
            finished_at=terminated.get("finishedAt") or "",
            waits_for=_waits_for(status),
        )

    @property
    def started(self) -> bool:
        """Whether it has a log."""
        return self.phase in ("Running", "Succeeded", "Failed")

    @property
    def ended(self) -> bool:
        """Whether its log is complete."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def failed(self) -> bool:
        """Whether the training ended in it, and not well."""
        return self.phase == "Failed"

    @property
    def failed_for_good(self) -> bool:
        """Whether it ended in a way after which the operator does not start it again."""
        return self.failed and self.exit_code is not None and self.exit_code < _FIRST_RETRYABLE

    @property
    def lost_peer(self) -> bool:
        """Whether it ended because another replica was gone."""
        return self.exit_code == lost_peer.EXIT_CODE

    @property
    def how(self) -> str:
        """How it ended, in words that follow the replica's name."""
        if self.lost_peer:
            return f"lost another replica, exit code {self.exit_code}"
        if self.exit_code is None:
            return f"was ended ({self.reason or 'for no reason that Kubernetes names'})"
        why = f", {self.reason}" if self.reason not in ("", "Error", "Completed") else ""
        verb = "ended with" if self.exit_code < _FIRST_RETRYABLE else "was killed,"
        return f"{verb} exit code {self.exit_code}{why}"


@dataclass(frozen=True)
class Event:
    """What Kubernetes reported about an object.

    Attributes:
      reason: in one word, such as FailedCreatePod.
      message: in whole sentences.
      last_at: when it happened last, in RFC 3339 without a fraction.
    """

    reason: str
    message: str
    last_at: str

    @classmethod
    def read(cls, event: dict[str, Any]) -> Event:
        """Read an Event of the Kubernetes API."""
        series = event.get("series") or {}
        last_at = (
            event.get("lastTimestamp")
            or series.get("lastObservedTime")
            or event.get("eventTime")
            or event["metadata"].get("creationTimestamp")
            or ""
        )
        return cls(
            reason=event.get("reason") or "",
            message=" ".join((event.get("message") or "").split()),
            last_at=f"{last_at[:_SECONDS]}Z",
        )


def replica_name(kind: str, index: int | str) -> str:
    """Return what a replica is called in the cluster: `chief`, `worker 1`."""
    return CHIEF if kind == CHIEF else f"{kind} {index}"


def _waits_for(status: dict[str, Any]) -> str:
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    # Init containers are those that the cluster puts into every pod, such as a proxy's.
    for statuses in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(statuses) or []:
            waiting = container.get("state", {}).get("waiting") or {}
            reason = waiting.get("reason") or ""
            if reason and reason not in _USUAL_WAITS:
                return f"{reason}: {waiting.get('message', '')}"
    return ""
