"""The reasons why replicas of a training job do not run, from its pods and from its warnings."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from platforms.kubernetes_objects import Object
from platforms.training_jobs.client import JobClient
from platforms.training_jobs.kinds import JobKind, conditions, replicas
from platforms.training_jobs.pods import Pod

_USUAL_SECONDS = 30.0
"""Seconds in which a controller usually creates the pods of a job."""
_REFUSED = re.compile(r"\w*(FailedCreate|CreationFailed)")
"""The reasons of controllers' events about pods and services, such as FailedCreatePod."""
_TEMPORARY = re.compile(
    r"is lost \(|is Suspended|exceeded quota|SchedulingGated: "
    r"|Unschedulable: (?!.*persistentvolumeclaim)"
)
"""The problems that may end without a change by the user."""


@dataclass(frozen=True)
class Problem:
    """A reason why a replica does not run.

    Attributes:
      subject: the replica, or the object that creates it, such as `JobSet x`.
      text: the reason, which follows the subject in a message.
    """

    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.subject} {self.text}"

    @property
    def is_temporary(self) -> bool:
        """True if the problem may end without a change by the user."""
        return _TEMPORARY.search(str(self)) is not None


class Problems:
    """The problems of a job at its last poll, and the seconds with a permanent problem.

    Attributes:
      found: the problems of the last poll.
    """

    def __init__(self) -> None:
        self.found: list[Problem] = []
        self._permanent_since: float | None = None

    def update(self, found: list[Problem]) -> None:
        """Replace the problems by those of the next poll."""
        self.found = found
        if all(problem.is_temporary for problem in found):
            self._permanent_since = None
        elif self._permanent_since is None:
            self._permanent_since = time.monotonic()

    @property
    def permanent_seconds(self) -> float:
        """Seconds for which every poll has found a permanent problem; 0 if the last found none."""
        if self._permanent_since is None:
            return 0.0
        return time.monotonic() - self._permanent_since


def find_problems(
    client: JobClient, job: Object, pods: Sequence[Pod], seconds: float
) -> list[Problem]:
    """Return the problems of replicas that do not run, each text once.

    Args:
      client: the client of the job. Its warnings are requested only if a replica has no pod or a
        pod that has not started.
      job: the job as the API returns it.
      pods: the newest pod of each replica.
      seconds: the seconds since this process began to follow the job.

    Raises:
      InputError: the API refuses the request for the warnings.
      Unreachable: the API does not respond.
    """
    title = client.kind.title
    last = conditions(job)[-1:]
    if last and last[0]["type"] == "Suspended":
        return [Problem(title, f"is Suspended: {last[0].get('message')}")]
    found = {pod.replica: pod.problem for pod in pods if pod.problem}
    existing = {pod.replica for pod in pods if not pod.to_replace}
    missing = not existing.issuperset(replicas(job))
    pending = {pod.uid: pod for pod in pods if pod.phase == "Pending"}
    # The training operator writes no status if the API server refuses a pod or a service.
    accepted = any(job.get("status", {}).values())
    if missing or pending or not accepted:
        for event in client.warnings(job):
            if event["involvedObject"]["kind"] == "Pod":
                found |= _pod_problem(event, pending)
            elif missing or not accepted:
                found |= _refusal(event)
    overdue = seconds > _USUAL_SECONDS
    if overdue and not (found or accepted or pods):
        found[title] = _no_pods(client.kind)
    # Equal replicas usually have the same problem, which is reported for the first of them.
    problems: dict[str, Problem] = {}
    for subject, text in found.items():
        problems.setdefault(text, Problem(subject, text))
    return list(problems.values())


def _pod_problem(event: Object, pending: dict[str, Pod]) -> dict[str, str]:
    """Return {replica: problem} for an event about a pending pod, else an empty one.

    Args:
      event: an event about a pod, such as a volume that its node cannot mount.
      pending: uid -> pod, for the pods that are pending.
    """
    pod = pending.get(event["involvedObject"].get("uid"))
    # The status of a pod has the reason why no node was chosen. An event with this reason is
    # outdated as soon as the pod has a node.
    if pod is None or pod.problem or event.get("reason") == "FailedScheduling":
        return {}
    return {pod.replica: f"does not run yet: {_text(event)}"}


def _refusal(event: Object) -> dict[str, str]:
    """Return {object: problem} for an event about a refused pod or service, else an empty one."""
    owner = event["involvedObject"]
    text = _text(event)
    return {f"{owner['kind']} {owner['name']}": f"reports {text}"} if _REFUSED.match(text) else {}


def _no_pods(kind: JobKind) -> str:
    return f"has no pods: check that {kind.controller} runs in this cluster"


def _text(event: Object) -> str:
    return f"{event.get('reason')}: {event.get('message')}"
