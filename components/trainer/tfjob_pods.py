"""A pod of a TFJob, as far as following the training takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from components.trainer.tfjob_manifest import CONTAINER
from trainer_module.cluster import CHIEF

JOB_LABEL = "training.kubeflow.org/job-name"
TYPE_LABEL = "training.kubeflow.org/replica-type"
INDEX_LABEL = "training.kubeflow.org/replica-index"

_FIRST_RETRYABLE = 128
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
      finished_at: when it ended, in RFC 3339.
      waits_for: why it does not run yet, if for nothing usual.
    """

    name: str
    uid: str
    replica: str
    phase: str
    exit_code: int | None
    reason: str
    finished_at: str
    waits_for: str

    @classmethod
    def read(cls, pod: dict[str, Any]) -> Pod:
        """From what the Kubernetes API says of it."""
        metadata, status = pod["metadata"], pod.get("status", {})
        labels = metadata.get("labels", {})
        kind, index = labels.get(TYPE_LABEL, ""), labels.get(INDEX_LABEL, "")
        states = [
            container.get("state", {})
            for container in status.get("containerStatuses", [])
            if container["name"] == CONTAINER
        ]
        state = states[0] if states else {}
        terminated = state.get("terminated", {})
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            replica=CHIEF if kind == CHIEF else f"{kind} {index}",
            phase=status.get("phase", "Unknown"),
            exit_code=terminated.get("exitCode"),
            reason=status.get("reason") or terminated.get("reason", ""),
            finished_at=terminated.get("finishedAt") or "",
            waits_for=_waits_for(status, state),
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
    def how(self) -> str:
        """How it ended, in words that follow the replica's name."""
        if self.exit_code is None:
            return f"was ended ({self.reason or 'for no reason that Kubernetes names'})"
        why = f", {self.reason}" if self.reason not in ("", "Error", "Completed") else ""
        verb = "ended with" if self.exit_code < _FIRST_RETRYABLE else "was killed,"
        return f"{verb} exit code {self.exit_code}{why}"


def _waits_for(status: dict[str, Any], state: dict[str, Any]) -> str:
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    waiting = state.get("waiting", {})
    reason = waiting.get("reason", "")
    if not reason or reason in _USUAL_WAITS:
        return ""
    return f"{reason}: {waiting.get('message', '')}"
