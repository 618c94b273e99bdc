"""Follows a TFJob to its end: its logs, its pods, what becomes of them, and why it failed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from absl import logging

from core.errors import InputError
from platforms.jobs.tfjob.client import Forbidden, TFJobClient
from platforms.jobs.tfjob.logs import Logs, printed_line, telling_line
from platforms.jobs.tfjob.manifest import MOST_RESTARTS
from platforms.jobs.tfjob.pods import Pod
from platforms.jobs.tfjob.refusals import Refusal, Refusals
from trainer_module.distribute.cluster import CHIEF, WORKER
from trainer_module.distribute.local_cluster import BAD_SETTINGS

SUCCEEDED, FAILED = "Succeeded", "Failed"

_SECONDS_TO_FAIL = 60.0
"""Between the failure of a replica for good and that of the TFJob: operators before 1.8.1 leave it
`Restarting` for ever when another replica was killed at the same time."""
_SECONDS_FOR_LOGS = 15.0


class TFJobFailed(RuntimeError):
    """The training failed, or did not end in time; the message is one line."""


class GivenUp(TFJobFailed):
    """The TFJob would go on, to no good end."""


@dataclass(frozen=True)
class Terms:
    """How long a TFJob is waited for, and how its training is known to come further.

    Attributes:
      timeout_seconds: how long it may take from now on.
      refused_seconds: how long replicas may be refused for a reason that does not pass by itself,
        such as a missing service account. For what may pass, such as a quota, it waits.
      poll_seconds: between two looks at it.
      is_done: whether what the training is for is there.
      progress: text that changes when the training has come further. A training is given up when a
        replica was restarted more than MOST_RESTARTS times without any change.
    """

    timeout_seconds: float
    refused_seconds: float
    poll_seconds: float
    is_done: Callable[[], bool]
    progress: Callable[[], str]


class Follow:
    """Looks at a TFJob time and again, until it ends."""

    def __init__(self, client: TFJobClient, name: str, uid: str, terms: Terms):
        self._client = client
        self._name = name
        self._uid = uid
        self._terms = terms
        self._progress_then = ""
        self._started = time.monotonic()
        self._logs = Logs(client)
        self._pods: list[Pod] = []
        self._pods_are_told = True
        self._uids: dict[str, str] = {}
        self._restarts: Counter[str] = Counter()
        self._lost: dict[str, Pod] = {}
        self._failed_since: float | None = None
        self._refusals = Refusals(client, name, uid)
        self._refused: list[Refusal] = []
        self._refused_since: float | None = None
        self._said: dict[str, str] = {}

    def until_end(self) -> bool:
        """Return when the training is over; its logs are in this process's log by then.

        Returns:
          Whether the TFJob has ended; one that has not has to be deleted.

        Raises:
          InputError, TFJobFailed, Unreachable: see `tfjob_run.run`.
          GivenUp: the TFJob is still there, and has to be deleted.
        """
        while True:
            job = self._client.get(self._name)
            if (
                job is None
                or job["metadata"]["uid"] != self._uid
                or "deletionTimestamp" in job["metadata"]
            ):
                self._logs.finish(_SECONDS_FOR_LOGS)
                raise TFJobFailed(f"{self._which} was deleted by somebody else while it trained")
            self._look_at_pods()
            self._say_conditions(job)
            end = end_of(job)
            if end is not None:
                self._logs.finish(_SECONDS_FOR_LOGS)
                if end["type"] == SUCCEEDED:
                    logging.info("%s succeeded", self._which)
                elif self._chief_succeeded(job):
                    # It is the last to end a training, when the model is where it should be.
                    logging.warning("%s: %s, but the training was over", self._which, said_in(end))
                else:
                    self._fail(f"failed: {said_in(end)}")
                return True
            if self._chief_trains_alone(job):
                # The others have ended, so the model is there; nobody would train with the chief.
                logging.warning("%s: the chief was lost when the training was over", self._which)
                return False
            self._look_at_refusals(job)
            self._give_up_in_time()
            time.sleep(self._terms.poll_seconds)

    @property
    def _which(self) -> str:
        return f"TFJob {self._name} in namespace {self._client.namespace}"

    def _look_at_pods(self) -> None:
        if not self._pods_are_told:
            return
        try:
            self._pods = self._client.pods(self._name)
        except Forbidden as error:
            # The training itself does not depend on it.
            self._pods_are_told = False
            logging.warning("Neither logs nor states of the pods are shown: %s", error)
            return
        self._logs.update(self._pods)
        for pod in self._pods:
            if self._uids.setdefault(pod.replica, pod.uid) != pod.uid:
                self._uids[pod.replica] = pod.uid
                self._count_restart(pod.replica)
                self._say(pod.replica, "was started again")
            if pod.failed and not pod.failed_for_good:
                self._lost[pod.replica] = pod
            if pod.ended:
                self._say(pod.replica, pod.how)

    def _count_restart(self, replica: str) -> None:
        progress = self._terms.progress()
        if progress != self._progress_then:
            self._progress_then = progress
            self._restarts.clear()
        self._restarts[replica] += 1

    def _look_at_refusals(self, job: dict[str, Any]) -> None:
        if not self._pods_are_told:
            return
        self._refused = self._refusals.look(job, self._pods)
        for refusal in self._refused:
            self._say(refusal.who, f"{refusal.why}; {refusal.remedy}", logging.WARNING)
        if all(refusal.passes for refusal in self._refused):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()

    def _say_conditions(self, job: dict[str, Any]) -> None:
        conditions = _conditions(job)
        if conditions:
            last = conditions[-1]
            self._say("the TFJob", f"is {last['type']}: {said_in(last)}")

    def _say(self, who: str, what: str, level: int = logging.INFO) -> None:
        """In the log, once."""
        if self._said.get(who) != what:
            self._said[who] = what
            logging.log(level, "%s: %s %s", self._name, who, what)

    def _give_up_in_time(self) -> None:
        now = time.monotonic()
        if now - self._started > self._terms.timeout_seconds:
            # Not the logs first: what is left of them may take a while.
            raise GivenUp(
                f"{self._which} did not end within {self._terms.timeout_seconds / 3600:g} hours "
                "(kubeflow.training_timeout_hours); run again to continue from the last checkpoint"
                + self._waiting()
            )
        if self._refused_since and now - self._refused_since > self._terms.refused_seconds:
            stays = next(each for each in self._refused if not each.passes)
            minutes = self._terms.refused_seconds / 60
            raise GivenUp(
                f"{self._which}: {stays}; it was given up after {minutes:g} minutes "
                "(kubeflow.refused_timeout_minutes)"
            )
        if any(restarts > MOST_RESTARTS for restarts in self._restarts.values()):
            replica = min(self._restarts, key=self._blame)
            how = self._lost[replica].how if replica in self._lost else "ended"
            raise GivenUp(
                f"{self._which}: {replica} {how}, again after {MOST_RESTARTS} restarts"
                + _advice(how)
            )
        if any(pod.failed_for_good for pod in self._pods):
            self._failed_since = self._failed_since or now
            if now - self._failed_since > _SECONDS_TO_FAIL:
                self._logs.finish(_SECONDS_FOR_LOGS)
                self._fail("failed", GivenUp)
        else:
            self._failed_since = None

    def _blame(self, replica: str) -> tuple[bool, int]:
        """Order of the replicas that were restarted; one that was lost restarts all the others."""
        lost = self._lost.get(replica)
        return lost is not None and lost.lost_peer, -self._restarts[replica]

    def _chief_succeeded(self, job: dict[str, Any]) -> bool:
        chief = _chief(job)
        return any(pod.replica == chief and pod.phase == SUCCEEDED for pod in self._pods)

    def _chief_trains_alone(self, job: dict[str, Any]) -> bool:
        """Whether the chief was restarted after another replica had trained to the end."""
        chief = _chief(job)
        ended = [pod.finished_at for pod in self._pods if pod.phase == SUCCEEDED]
        restarted = [pod.created_at for pod in self._pods if pod.replica == chief]
        return bool(ended and restarted) and restarted[0] > min(ended) and self._terms.is_done()

    def _waiting(self) -> str:
        return f"; {'; '.join(map(str, self._refused))}" if self._refused else ""

    def _fail(self, message: str, kind: type[TFJobFailed] = TFJobFailed) -> None:
        """Raise the error that explains the failure best."""
        failed = _cause(self._pods)
        if failed is None:
            raise kind(f"{self._which} {message}{self._also_lost()}")
        lines = self._logs.last_lines(failed.replica)
        if failed.exit_code == BAD_SETTINGS and lines:
            raise InputError(printed_line(lines))
        logging.error(
            "The last lines of %s:\n%s", failed.replica, "\n".join(lines) or "(it said nothing)"
        )
        raise kind(
            f"{self._which} failed: {failed.replica} {failed.how}: {telling_line(lines)}"
            f"{_advice(failed.how)}{self._also_lost(failed.replica)}; run again to continue from "
            "the last checkpoint"
        )

    def _also_lost(self, failed: str = "") -> str:
        """Replicas that were started again: the others fail when they lose one."""
        again = [
            f"{replica} "
            + (self._lost[replica].how if replica in self._lost else "ended and was started again")
            for replica in {**self._lost, **self._restarts}
            if replica != failed
        ]
        return f"; before that {', '.join(again)}" if again else ""


def _chief(job: dict[str, Any]) -> str:
    return CHIEF if "Chief" in job["spec"]["tfReplicaSpecs"] else f"{WORKER} 0"


def end_of(job: dict[str, Any]) -> dict[str, Any] | None:
    """Return the condition with which a TFJob ended; None: it has not."""
    for condition in _conditions(job):
        if condition["type"] in (SUCCEEDED, FAILED):
            return condition
    return None


def _conditions(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that hold, the latest last."""
    conditions = job.get("status", {}).get("conditions") or []
    return [condition for condition in conditions if condition["status"] == "True"]


def said_in(condition: dict[str, Any]) -> str:
    """Return the message of a condition."""
    return str(condition.get("message", ""))


def _cause(pods: Sequence[Pod]) -> Pod | None:
    """The pod whose end explains the failure best."""
    failed = [pod for pod in pods if pod.failed]
    return min(
        failed,
        key=lambda pod: (
            pod.exit_code != BAD_SETTINGS,
            not pod.failed_for_good,
            pod.lost_peer,
            pod.finished_at,
            pod.replica,
        ),
        default=None,
    )


def _advice(how: str) -> str:
    return ", give it more with cluster.resources.Trainer.memory" if "OOMKilled" in how else ""
