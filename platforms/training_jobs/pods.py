"""A pod of a training job, with the fields that decide whether the job continues or fails."""

from __future__ import annotations

from typing import NamedTuple

from platforms.kubernetes_objects import Object, disruption, pod_problem, terminated
from platforms.training_jobs.manifests import PERMANENT
from trainer_module.cluster.exits import LOST_PEER


class Pod(NamedTuple):
    """One pod at one moment. Times have the format of RFC 3339.

    Attributes:
      name: the name of the pod, which its replacement may have too.
      uid: the id of the pod, which no other pod has.
      replica: the replica that runs in the pod, `chief` or `worker 1`.
      phase: Kubernetes's phase: Pending, Running, Succeeded, Failed or Unknown.
      exit_code: the exit code of the training; None if it has not ended, or the pod was evicted.
      reason: Kubernetes's reason for the end of the pod, such as OOMKilled or Evicted.
      created_at: time of the creation, without fractions of a second; empty if it is unknown.
      finished_at: time of the end of the training; empty before it, and after an eviction.
      problem: the reason why the pod does not run, or the loss of its node, as a clause that
        follows the name of the replica in a message. Empty: there is no problem.
    """

    name: str
    uid: str
    replica: str
    phase: str
    exit_code: int | None
    reason: str
    created_at: str
    finished_at: str
    problem: str

    @classmethod
    def read(cls, pod: Object, replica: str, container: str) -> Pod:
        """Return a pod from an object of the API.

        Args:
          pod: the object as the API returns it.
          replica: the replica that runs in the pod.
          container: the name of the container whose exit code is that of the training.
        """
        metadata = pod["metadata"]
        status = pod.get("status", {})
        ended = terminated(pod, container)
        return cls(
            name=metadata["name"],
            uid=metadata["uid"],
            replica=replica,
            phase=status.get("phase", "Unknown"),
            exit_code=ended.get("exitCode"),
            reason=status.get("reason") or ended.get("reason") or disruption(status),
            created_at=metadata.get("creationTimestamp") or "",
            finished_at=ended.get("finishedAt") or "",
            problem=pod_problem(pod),
        )

    @property
    def ended(self) -> bool:
        """True if no container of the pod runs, and none will start again."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def to_replace(self) -> bool:
        """True if the pod failed and its controller replaces it."""
        return self.phase == "Failed" and self.exit_code not in PERMANENT

    @property
    def failed_permanently(self) -> bool:
        """True if the pod failed with an exit code that also fails its job."""
        return self.phase == "Failed" and not self.to_replace

    @property
    def lost_peer(self) -> bool:
        """True if the training ended because of the loss of another replica."""
        return self.exit_code == LOST_PEER

    @property
    def end_text(self) -> str:
        """The end of the pod, as a clause that follows the name of the replica in a message."""
        if self.exit_code is None:
            return f"was terminated ({self.reason or 'no reason from Kubernetes'})"
        verb = "lost another replica," if self.lost_peer else "ended with"
        reason = f", {self.reason}" if self.reason not in ("", "Error", "Completed") else ""
        if self.reason == "OOMKilled":
            reason += " (increase cluster.resources.Trainer.memory)"
        return f"{verb} exit code {self.exit_code}{reason}"
