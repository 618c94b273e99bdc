"""Run a training as a job on Kubernetes: create it or find it, follow it to its end, delete it."""

from __future__ import annotations

import re
import time
from collections import Counter

from absl import logging

from core import exit_codes
from core.errors import InputError
from platforms.training_jobs.client import JobClient, Unreachable, connect, supported_kind
from platforms.training_jobs.job import (
    JobAborted,
    JobFailed,
    KubernetesJobSettings,
    exceeded_timeout,
    is_done,
    job_ends_with_step,
    last_checkpoint,
)
from platforms.training_jobs.kinds import FAILED, conditions, end_of, replicas
from platforms.training_jobs.logs import Logs, error_line
from platforms.training_jobs.manifests import MAX_RESTARTS, Object
from platforms.training_jobs.pods import Pod
from trainer_module.settings import TrainingJob

REFUSED_SECONDS = 600.0
"""Timeout of replicas that Kubernetes refuses for a permanent reason, such as a missing service
account. A temporary reason, such as a quota, has no timeout of its own."""
_SECONDS_TO_DELETE = 20.0
"""Timeout of the request to delete the job; SIGKILL follows 30 seconds after SIGTERM."""
_USUAL_SECONDS = 30.0
"""Seconds in which a controller usually creates the pods of a job."""
_REFUSED = re.compile(r"\w*(FailedCreate|CreationFailed)")
"""The reasons of controllers' events about pods and services, such as FailedCreatePod."""
_TEMPORARY = re.compile(
    r"is lost \(|is Suspended|exceeded quota|SchedulingGated: "
    r"|Unschedulable: (?!.*persistentvolumeclaim)"
)
"""Reasons why replicas do not run that may end without a change by the user."""


def train(job: TrainingJob, job_file: str, settings: KubernetesJobSettings) -> None:
    """Run a training as a job of the kind that the settings name, or that the cluster has.

    A job of the same name belongs to an earlier attempt of the step. If it still runs, or succeeded
    with a model, this function follows it. Otherwise it deletes it and creates a new one.

    This function deletes the job after SIGTERM in the main thread, after SIGINT, and when it raises
    JobAborted, for example after a timeout. A job that its controller has failed is kept, and so is
    one whose API does not respond.
    """
    api = connect()
    kind = supported_kind(api, settings)
    client = JobClient(api, kind, settings.namespace)
    run(client, kind.make_manifest(job, job_file, settings), job, settings)


def run(
    client: JobClient, manifest: Object, job: TrainingJob, settings: KubernetesJobSettings
) -> None:
    """Run a job; return when it has succeeded and its logs are in the log of this process."""
    with job_ends_with_step(lambda: _delete(client, manifest["metadata"]["name"])):
        # Without one of these permissions no job is created.
        client.pods(manifest)
        client.warnings(manifest)
        _JobFollower(client, manifest, job, settings).until_end()


def _delete(client: JobClient, name: str) -> None:
    title = client.kind.title
    logging.info("Deleting %s %s", title, name)
    try:
        client.delete(name, _SECONDS_TO_DELETE)
    except (InputError, Unreachable) as error:
        logging.error("%s %s may still exist: %s", title, name, error)


class _JobFollower:
    """The loop that polls a job until its end, and the state of its replicas."""

    def __init__(
        self, client: JobClient, manifest: Object, job: TrainingJob, settings: KubernetesJobSettings
    ):
        self._client, self._manifest, self._training = client, manifest, job
        self._settings = settings
        self._kind, self._name = client.kind, manifest["metadata"]["name"]
        self._label = f"{self._kind.title} {self._name} in namespace {client.namespace}"
        self._describe = f"kubectl describe {self._kind.name} {self._name} -n {client.namespace}"
        self._replicas = replicas(manifest)
        self._started = time.monotonic()
        self._logs = Logs(client)
        self._pods: list[Pod] = []
        self._seen: dict[str, Pod] = {}
        self._restarts: Counter[str] = Counter()
        self._last_progress = ""
        self._warnings: list[str] = []
        self._refused_since: float | None = None
        self._logged: dict[str, str] = {}

    def until_end(self) -> None:
        """Create the job or find it; return when it has ended or its training is over."""
        uid = self._create_or_find()
        while True:
            job = self._client.get(self._name)
            metadata = job["metadata"] if job else {}
            if job is None or metadata["uid"] != uid or "deletionTimestamp" in metadata:
                self._logs.finish(self._pods)
                raise JobFailed(f"{self._label} was deleted by somebody else while it trained")
            self._update_pods(job)
            for last in conditions(job)[-1:]:
                self._log_change(self._kind.title, f"is {last['type']}: {last.get('message')}")
            if end := end_of(job):
                self._logs.finish(self._pods)
                if not self._only_lost_a_replica(end):
                    return
                self._check_limits()
                logging.warning("%s: %s; starting it again", self._label, end["message"])
                uid = self._create_or_find()
                continue
            ended = [pod.finished_at for pod in self._pods if pod.phase == "Succeeded"]
            if ended and any(pod.created_at > min(ended) for pod in self._pods):
                # It was restarted after the others had ended, and would wait for them in vain.
                logging.warning("%s: a replica was lost when the training was over", self._label)
                _delete(self._client, self._name)
                return
            self._update_warnings(job)
            self._check_limits()
            time.sleep(self._settings.poll_seconds)

    def _create_or_find(self) -> str:
        """Return the uid of the job to follow, after the deletion of an earlier one that failed."""
        title, deadline = self._kind.title, time.monotonic() + REFUSED_SECONDS
        while True:
            found = self._client.get(self._name)
            if found is None:
                created = self._client.create(self._manifest)
                if created is not None:
                    logging.info("Created %s", self._label)
                    return str(created["metadata"]["uid"])
                # Another process created it, or the response to an earlier attempt was lost.
            elif "deletionTimestamp" not in found["metadata"]:
                end = end_of(found)
                if end is None or (end["type"] != FAILED and is_done(self._training)):
                    logging.info("Following %s %s of an earlier attempt", title, self._name)
                    return str(found["metadata"]["uid"])
                text = f"of an earlier attempt, which is {end['type']}: {end.get('message')}"
                logging.info("Deleting %s %s %s", title, self._name, text)
                self._client.delete(self._name)
            elif time.monotonic() > deadline:
                raise JobFailed(f"{self._label} is not deleted; see {self._describe}")
            time.sleep(self._settings.poll_seconds)

    def _only_lost_a_replica(self, end: Object) -> bool:
        """Return whether a job that has ended has to start again; raise the error of a failure."""
        if end["type"] != FAILED:
            logging.info("%s succeeded", self._label)
        elif any(pod.phase == "Succeeded" for pod in self._pods):
            # No replica succeeds before the model is complete.
            logging.warning("%s: %s, but the training was over", self._label, end["message"])
        else:
            only_losses = self._pods and not any(pod.failed_permanently for pod in self._pods)
            if only_losses and self._kind.loss and self._kind.loss in end["message"]:
                return True
            raise self._failure(end["message"])
        return False

    def _update_pods(self, job: Object) -> None:
        """Read the pods, log their changes, and copy their logs."""
        # Times of creation have no fractions of a second.
        pods = sorted(self._client.pods(job), key=lambda pod: (pod.created_at, not pod.to_replace))
        # A Job keeps the failed pods that it has replaced.
        self._pods = list({pod.replica: pod for pod in pods}.values())
        self._logs.update(self._pods)
        for pod in pods:
            known = {each.replica for each in self._seen.values()}
            if pod.uid not in self._seen and pod.replica in known:
                self._count_restart(pod.replica)
            self._seen[pod.uid] = pod
        for pod in self._pods:
            if text := pod.end_text if pod.ended else pod.problem:
                self._log_change(pod.replica, text)

    def _count_restart(self, replica: str) -> None:
        progress = last_checkpoint(self._training)
        if progress != self._last_progress:
            self._last_progress = progress
            self._restarts.clear()
        self._restarts[replica] += 1
        self._log_change(replica, "was restarted")

    def _losses(self, but: str = "") -> str:
        """Describe the last loss of each replica; those that only lost another one come last."""
        current = {pod.uid for pod in self._pods if not pod.to_replace}
        lost = {pod.replica: pod for pod in self._seen.values() if pod.uid not in current}
        last = sorted(lost.values(), key=lambda pod: pod.lost_peer)
        return ", ".join(f"{pod.replica} {pod.end_text}" for pod in last if pod.replica != but)

    def _update_warnings(self, job: Object) -> None:
        first: dict[str, str] = {}
        for subject, text in self._find_warnings(job).items():
            # Equal replicas usually have the same problem.
            first.setdefault(text, subject)
        for text, subject in first.items():
            self._log_change(subject, text)
        self._warnings = [f"{subject} {text}" for text, subject in first.items()]
        if all(_TEMPORARY.search(warning) for warning in self._warnings):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()

    def _find_warnings(self, job: Object) -> dict[str, str]:
        """Return why replicas do not run: their names, or the object that creates them -> why."""
        last = conditions(job)[-1:]
        if last and last[0]["type"] == "Suspended":
            return {self._kind.title: f"is Suspended: {last[0].get('message')}"}
        found = {pod.replica: pod.problem for pod in self._pods if pod.problem}
        existing = {pod.replica for pod in self._pods if not pod.to_replace}
        missing = not existing.issuperset(self._replicas)
        pending = {pod.uid: pod for pod in self._pods if pod.phase == "Pending"}
        # The training operator writes no status if the API server refuses a pod or a service.
        accepted = any(job.get("status", {}).values())
        if not (missing or pending) and accepted:
            return found
        for event in self._client.warnings(job):
            of, text = event["involvedObject"], f"{event.get('reason')}: {event.get('message')}"
            if of["kind"] == "Pod":
                pod = pending.get(of.get("uid"))
                # It may be about a volume that the node cannot mount. What keeps a pod from a node
                # is in the pod, and its event is outdated as soon as the pod has a node.
                if pod and not pod.problem and event.get("reason") != "FailedScheduling":
                    found[pod.replica] = f"does not run yet: {text}"
            elif _REFUSED.match(text) and (missing or not accepted):
                found[f"{of['kind']} {of['name']}"] = f"reports {text}"
        overdue = time.monotonic() - self._started > _USUAL_SECONDS
        if overdue and not (found or accepted or self._pods):
            text = f"has no pods: check that {self._kind.controller} runs in this cluster"
            found[self._kind.title] = text
        return found

    def _log_change(self, subject: str, text: str) -> None:
        """Log a text about a subject unless it is the last one about the same subject."""
        if self._logged.get(subject) != text:
            self._logged[subject] = text
            logging.info("%s: %s %s", self._name, subject, text)

    def _check_limits(self) -> None:
        """Raise JobAborted if the training exceeds a limit or cannot succeed."""
        now = time.monotonic()
        reasons = "".join(f"; {warning}" for warning in self._warnings)
        describe = f"; see {self._describe}" if reasons else ""
        if now - self._started > self._settings.timeout_seconds:
            raise JobAborted(f"{exceeded_timeout(self._label, self._settings)}{reasons}{describe}")
        if self._refused_since and now - self._refused_since > REFUSED_SECONDS:
            minutes = f"{REFUSED_SECONDS / 60:g} minutes"
            raise JobAborted(f"{self._label} does not run after {minutes}{reasons}{describe}")
        if any(restarts > MAX_RESTARTS for restarts in self._restarts.values()):
            times = f"{MAX_RESTARTS} times without a new checkpoint"
            raise JobAborted(f"{self._label} was restarted {times}: {self._losses()}")

    def _failure(self, message: str) -> Exception:
        """Return the error of the replica that most likely caused the failure."""
        failed = min(
            (pod for pod in self._pods if pod.phase == "Failed"),
            key=lambda pod: (
                pod.exit_code != exit_codes.BAD_INPUT,
                not pod.failed_permanently,
                pod.lost_peer,
                pod.finished_at,
            ),
            default=None,
        )
        # An earlier loss may be the cause: the loss of one replica makes the others fail.
        losses = self._losses(failed.replica if failed else "")
        before = f"; before that {losses}" if losses else ""
        if failed is None:
            return JobFailed(f"{self._label} failed: {message}{before}")
        lines = self._logs.last_lines(failed)
        if failed.exit_code == exit_codes.BAD_INPUT and lines:
            return InputError(error_line(lines, printed=True))
        output = "\n".join(lines) or "(no output)"
        logging.error("The last lines of %s:\n%s", failed.replica, output)
        return JobFailed(
            f"{self._label} failed: {failed.replica} {failed.end_text}: {error_line(lines)}{before}"
            "; run again to continue from the last checkpoint"
        )
