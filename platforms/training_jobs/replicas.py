"""The replicas of a training job over time: their newest pods, restarts and losses."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Sequence

from core import exit_codes
from platforms.kubernetes_objects import Object
from platforms.training_jobs.kinds import FAILED, JobKind
from platforms.training_jobs.pods import Pod


class JobEnd(enum.Enum):
    """The meaning of the end of a job for its training."""

    DONE = enum.auto()
    """The training is over, and its model is complete."""
    LOST_REPLICA = enum.auto()
    """The job failed only because it lost a replica. A new job continues the training."""
    FAILED = enum.auto()
    """The training failed, and a new job would fail too."""


class Replicas:
    """The replicas of a job, according to its pods at each poll.

    Attributes:
      pods: the newest pod of each replica.
    """

    def __init__(self, last_checkpoint: Callable[[], str]):
        """Construct an object without pods.

        Args:
          last_checkpoint: returns the name of the last checkpoint of the training. Restarts before
            a new checkpoint do not count.
        """
        self.pods: list[Pod] = []
        self._last_checkpoint = last_checkpoint
        self._known_checkpoint = ""
        self._seen: dict[str, Pod] = {}
        self._restarts: Counter[str] = Counter()

    def update(self, pods: Sequence[Pod]) -> list[str]:
        """Add the pods of a poll; return the replicas that were restarted since the one before.

        Args:
          pods: all pods of the job that exist, including those that were replaced.
        """
        # Times of creation have no fractions of a second.
        ordered = sorted(pods, key=lambda pod: (pod.created_at, not pod.to_replace))
        # A Job keeps the failed pods that it has replaced.
        self.pods = list({pod.replica: pod for pod in ordered}.values())
        restarted = []
        for pod in ordered:
            known = {each.replica for each in self._seen.values()}
            if pod.uid not in self._seen and pod.replica in known:
                restarted.append(pod.replica)
                self._count_restart(pod.replica)
            self._seen[pod.uid] = pod
        return restarted

    def _count_restart(self, replica: str) -> None:
        checkpoint = self._last_checkpoint()
        if checkpoint != self._known_checkpoint:
            self._known_checkpoint = checkpoint
            self._restarts.clear()
        self._restarts[replica] += 1

    @property
    def most_restarts(self) -> int:
        """The greatest number of restarts of one replica since the last new checkpoint."""
        return max(self._restarts.values(), default=0)

    @property
    def restarted_after_end(self) -> bool:
        """True if a replica was restarted after another one had ended, so they cannot connect."""
        ended = [pod.finished_at for pod in self.pods if pod.phase == "Succeeded"]
        return bool(ended) and any(pod.created_at > min(ended) for pod in self.pods)

    def losses(self, left_out: str = "") -> str:
        """Return the last loss of each replica, in one line.

        The replicas that ended only because of the loss of another one come last.

        Args:
          left_out: a replica to leave out.
        """
        current = {pod.uid for pod in self.pods if not pod.to_replace}
        lost = {pod.replica: pod for pod in self._seen.values() if pod.uid not in current}
        last = sorted(lost.values(), key=lambda pod: pod.lost_peer)
        return ", ".join(f"{pod.replica} {pod.end_text}" for pod in last if pod.replica != left_out)

    def interpret_end(self, condition: Object, kind: JobKind) -> JobEnd:
        """Return the meaning of the end of the job.

        Args:
          condition: the condition with which the job ended, see `kinds.end_condition`.
          kind: the kind of the job.
        """
        if condition["type"] != FAILED:
            return JobEnd.DONE
        # No replica succeeds before the model is complete.
        if any(pod.phase == "Succeeded" for pod in self.pods):
            return JobEnd.DONE
        fails_after_loss = kind.loss is not None and kind.loss in condition["message"]
        only_losses = self.pods and not any(pod.failed_permanently for pod in self.pods)
        return JobEnd.LOST_REPLICA if fails_after_loss and only_losses else JobEnd.FAILED

    def most_likely_cause(self) -> Pod | None:
        """Return the failed pod that most likely caused the failure of the job, if any failed."""
        return min(
            (pod for pod in self.pods if pod.phase == "Failed"),
            key=lambda pod: (
                pod.exit_code != exit_codes.BAD_INPUT,
                not pod.failed_permanently,
                pod.lost_peer,
                pod.finished_at,
            ),
            default=None,
        )
