"""A pod of a job, and an event about it, with the fields that this package uses."""

from __future__ import annotations

from typing import Any, NamedTuple

from platforms.training_jobs.pod_template import PERMANENT
from trainer_module.cluster import exits

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
    lost_with: str

    @classmethod
    def read(cls, pod: dict[str, Any], replica: str, container: str) -> Pod:
        metadata, status = pod["metadata"], pod.get("status", {})
        phase, conditions = status.get("phase", "Unknown"), status.get("conditions") or []
        true = {each["type"]: each for each in conditions if each["status"] == "True"}
        disruption = true.get("DisruptionTarget", {}).get("reason", "")
        # Of these conditions the control plane changes only Ready, when the node does not respond.
        silent = "ContainersReady" in true and "Ready" not in true
        given_up = disruption or ("NodeNotReady" if silent else "")
        node = pod.get("spec", {}).get("nodeName")
        lost_with = (
            f"is lost ({given_up}): the job waits until node {node} has ended pod "
            f"{metadata['name']}, or until the Node object is deleted"
        )
        states = [
            each.get("state", {}).get("terminated", {})
            for each in status.get("containerStatuses") or []
            if each["name"] == container
        ]
        ended = states[0] if states else {}
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            replica=replica,
            phase=phase,
            exit_code=ended.get("exitCode"),
            reason=status.get("reason") or ended.get("reason") or disruption,
            created_at=metadata.get("creationTimestamp") or "",
            finished_at=ended.get("finishedAt") or "",
            blocked_by=_blocked_by(status) if phase == "Pending" else "",
            lost_with=lost_with if given_up and phase == "Running" else "",
        )

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def failed_permanently(self) -> bool:
        """True if the pod failed and its controller does not replace it."""
        return self.phase == "Failed" and self.exit_code in PERMANENT

    @property
    def to_replace(self) -> bool:
        """True if the pod failed and its controller replaces it."""
        return self.phase == "Failed" and self.exit_code not in PERMANENT

    @property
    def lost_peer(self) -> bool:
        """True if the training ended because of the loss of another replica."""
        return self.exit_code == exits.LOST_PEER

    @property
    def end_text(self) -> str:
        """A description of the pod's end, which follows the name of the replica in a message."""
        if self.exit_code is None:
            return f"was terminated ({self.reason or 'no reason from Kubernetes'})"
        verb = "lost another replica," if self.lost_peer else "ended with"
        reason = f", {self.reason}" if self.reason not in ("", "Error", "Completed") else ""
        if self.reason == "OOMKilled":
            reason += " (increase cluster.resources.Trainer.memory)"
        return f"{verb} exit code {self.exit_code}{reason}"


class Event(NamedTuple):
    """A warning about an object; `last_at` is in RFC 3339 without a fraction."""

    kind: str
    name: str
    uid: str
    text: str
    last_at: str

    @classmethod
    def read(cls, event: dict[str, Any]) -> Event:
        of, series = event["involvedObject"], event.get("series") or {}
        times = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"))
        return cls(
            kind=of.get("kind", ""),
            name=of.get("name", ""),
            uid=of.get("uid", ""),
            text=f"{event.get('reason')}: {event.get('message')}",
            last_at=next(filter(None, times), "")[:_SECONDS] + "Z",
        )


def _blocked_by(status: dict[str, Any]) -> str:
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason')}: {condition.get('message')}"
    # A cluster may add init containers to every pod, for a proxy for example.
    for statuses in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(statuses) or []:
            waiting = container.get("state", {}).get("waiting") or {}
            if waiting.get("reason") and waiting["reason"] not in _USUAL_WAITS:
                return f"{waiting['reason']}: {waiting.get('message', '')}"
    return ""
