"""Run a training as a job on Kubernetes: create it or find it, follow it to its end, delete it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from absl import logging

from core import exit_codes
from core.errors import InputError, UserError
from platforms.kubernetes_api import connect
from platforms.kubernetes_objects import Object
from platforms.training_jobs.client import JobClient, Unreachable, supported_kind
from platforms.training_jobs.job import (
    JobAborted,
    JobFailed,
    KubernetesJobSettings,
    exceeded_timeout,
    is_done,
    job_ends_with_step,
    last_checkpoint,
)
from platforms.training_jobs.kinds import FAILED, conditions, end_condition
from platforms.training_jobs.logs import Logs, error_line
from platforms.training_jobs.manifests import MAX_RESTARTS
from platforms.training_jobs.problems import Problems, find_problems
from platforms.training_jobs.replicas import JobEnd, Replicas
from trainer_module.cluster.exits import RUN_AGAIN
from trainer_module.settings import TrainingJob

REFUSED_SECONDS = 600.0
"""Timeout of replicas that Kubernetes refuses for a permanent reason, such as a missing service
account. For a temporary reason, such as a quota, only the timeout of the training applies."""
_SECONDS_TO_DELETE = 20.0
"""Timeout of the request to delete the job; SIGKILL follows 30 seconds after SIGTERM."""


def train(job: TrainingJob, job_file: str, settings: KubernetesJobSettings) -> None:
    """Run a training as a job of the kind that the settings name, or that the cluster has.

    A job of the same name belongs to an earlier attempt of the step. This function follows that job
    if it still runs, or if it succeeded and its model is complete. Otherwise it deletes that job
    and creates a new one.

    The job is deleted after SIGTERM in the main thread, after SIGINT, and when this function raises
    JobAborted, for example after a timeout. A failed job is kept. A job is also kept if the API
    does not respond.

    Args:
      job: the training.
      job_file: the path of `job` in a file, which every pod reads.
      settings: the cluster, the pods and the timeout.

    Raises:
      InputError: there is no cluster, it lacks the kind of job or a permission, it refuses the job,
        or the training rejects a setting.
      Unreachable: the API does not respond before the timeout of a request.
      JobFailed: the training failed, or another program deleted its job.
      JobAborted: the training exceeded its timeout or the limit of restarts, or Kubernetes refused
        its pods for `REFUSED_SECONDS`.
    """
    api = connect()
    kind = supported_kind(api, settings)
    client = JobClient(api, kind, settings.namespace)
    run(client, kind.make_manifest(job, job_file, settings), job, settings)


def run(
    client: JobClient, manifest: Object, job: TrainingJob, settings: KubernetesJobSettings
) -> None:
    """Run a job; return when it has succeeded and its logs are in the log of this process.

    Args:
      client: the client for jobs of the kind of the manifest.
      manifest: the object to create.
      job: the training that the pods run.
      settings: the timeout and the interval between two polls.

    Raises:
      InputError, Unreachable, JobFailed, JobAborted: see `train`.
    """
    own = _Job(client, manifest, job, settings)
    with job_ends_with_step(own.delete):
        # These requests fail without the permission, before a job is created.
        client.pods(manifest)
        client.warnings(manifest)
        _Follower(own).until_end()


@dataclass(frozen=True)
class _Job:
    """The job of a training, which has the same name in every attempt of the step."""

    client: JobClient
    manifest: Object
    training: TrainingJob
    settings: KubernetesJobSettings

    @property
    def name(self) -> str:
        return str(self.manifest["metadata"]["name"])

    @property
    def label(self) -> str:
        """The subject of a message about the job."""
        return f"{self.client.kind.title} {self.name} in namespace {self.client.namespace}"

    @property
    def describe(self) -> str:
        """The command that shows the state of the job."""
        return f"kubectl describe {self.client.kind.name} {self.name} -n {self.client.namespace}"

    def create_or_find(self) -> str:
        """Find the job to follow, or create it; return its uid.

        A failed job of an earlier attempt is deleted first.

        Raises:
          InputError: the API refuses a request.
          Unreachable: the API does not respond.
          JobFailed: the earlier job still exists `REFUSED_SECONDS` after this call.
        """
        title = self.client.kind.title
        deadline = time.monotonic() + REFUSED_SECONDS
        while True:
            found = self.client.get(self.name)
            if found is None:
                created = self.client.create(self.manifest)
                if created is not None:
                    logging.info("Created %s", self.label)
                    return str(created["metadata"]["uid"])
                # Another process created it, or the response to an earlier attempt was lost.
            elif "deletionTimestamp" not in found["metadata"]:
                end = end_condition(found)
                if end is None or (end["type"] != FAILED and is_done(self.training)):
                    logging.info("Following %s %s of an earlier attempt", title, self.name)
                    return str(found["metadata"]["uid"])
                text = f"of an earlier attempt, which is {end['type']}: {end['message']}"
                logging.info("Deleting %s %s %s", title, self.name, text)
                self.client.delete(self.name)
            elif time.monotonic() > deadline:
                raise JobFailed(f"{self.label} is not deleted; see {self.describe}")
            time.sleep(self.settings.poll_seconds)

    def find(self, uid: str) -> Object | None:
        """Return the job as it is now; None if it was deleted or is being deleted.

        Raises:
          InputError: the API refuses the request.
          Unreachable: the API does not respond.
        """
        found = self.client.get(self.name)
        if found is None or found["metadata"]["uid"] != uid:
            return None
        return None if "deletionTimestamp" in found["metadata"] else found

    def delete(self) -> None:
        """Delete the job. An error is only logged, because the step ends in any case."""
        title = self.client.kind.title
        logging.info("Deleting %s %s", title, self.name)
        try:
            self.client.delete(self.name, _SECONDS_TO_DELETE)
        except (InputError, Unreachable) as error:
            logging.error("%s %s may still exist: %s", title, self.name, error)


class _Changes:
    """A log of texts about subjects, which omits a text that equals the last one of its subject."""

    def __init__(self, name: str):
        self._name = name
        self._last: dict[str, str] = {}

    def log(self, subject: str, text: str) -> None:
        if self._last.get(subject) != text:
            self._last[subject] = text
            logging.info("%s: %s %s", self._name, subject, text)


class _Follower:
    """The loop that polls a job until its end."""

    def __init__(self, job: _Job):
        self._job = job
        self._started = time.monotonic()
        self._changes = _Changes(job.name)
        self._logs = Logs(job.client)
        self._replicas = Replicas(lambda: last_checkpoint(job.training))
        self._problems = Problems()

    def until_end(self) -> None:
        """Create the job or find it; return when its training has succeeded.

        Raises:
          InputError, Unreachable, JobFailed, JobAborted: see `train`.
        """
        uid = self._job.create_or_find()
        while True:
            job = self._read(uid)
            condition = end_condition(job)
            if condition is not None:
                if self._is_over(condition):
                    return
                self._check_limits()
                logging.warning("%s: %s; starting it again", self._job.label, condition["message"])
                uid = self._job.create_or_find()
                continue
            if self._replicas.restarted_after_end:
                label = self._job.label
                logging.warning("%s: a replica was lost after the end of the training", label)
                self._job.delete()
                return
            self._update_problems(job)
            self._check_limits()
            time.sleep(self._job.settings.poll_seconds)

    def _read(self, uid: str) -> Object:
        """Return the job as it is now; log its changes and those of its pods, and copy their logs.

        Raises:
          InputError: the API refuses a request.
          Unreachable: the API does not respond.
          JobFailed: another program deleted the job.
        """
        client = self._job.client
        job = self._job.find(uid)
        if job is None:
            self._logs.finish(self._replicas.pods)
            raise JobFailed(
                f"{self._job.label} was deleted by another program or user during the training"
            )
        restarted = self._replicas.update(client.pods(job))
        self._logs.update(self._replicas.pods)
        for replica in restarted:
            self._changes.log(replica, "was restarted")
        for pod in self._replicas.pods:
            if text := pod.end_text if pod.ended else pod.problem:
                self._changes.log(pod.replica, text)
        for last in conditions(job)[-1:]:
            self._changes.log(client.kind.title, f"is {last['type']}: {last['message']}")
        return job

    def _is_over(self, condition: Object) -> bool:
        """Return whether the training is over; if not, its job has to be created again.

        Args:
          condition: the condition with which the job ended.

        Raises:
          InputError: the training rejected a setting.
          JobFailed: the training failed.
        """
        self._logs.finish(self._replicas.pods)
        end = self._replicas.interpret_end(condition, self._job.client.kind)
        if end is JobEnd.FAILED:
            raise self._failure(condition["message"])
        if end is JobEnd.LOST_REPLICA:
            return False
        if condition["type"] == FAILED:
            text = f"{condition['message']}, but the training had ended"
            logging.warning("%s: %s", self._job.label, text)
        else:
            logging.info("%s succeeded", self._job.label)
        return True

    def _update_problems(self, job: Object) -> None:
        seconds = time.monotonic() - self._started
        found = find_problems(self._job.client, job, self._replicas.pods, seconds)
        for problem in found:
            self._changes.log(problem.subject, problem.text)
        self._problems.update(found)

    def _check_limits(self) -> None:
        """Check the limits of the training.

        Raises:
          JobAborted: the training exceeds a limit, see `train`.
        """
        label = self._job.label
        settings = self._job.settings
        reasons = "".join(f"; {problem}" for problem in self._problems.found)
        describe = f"; see {self._job.describe}" if reasons else ""
        if time.monotonic() - self._started > settings.timeout_seconds:
            raise JobAborted(f"{exceeded_timeout(label, settings)}{reasons}{describe}")
        if self._problems.permanent_seconds > REFUSED_SECONDS:
            minutes = f"{REFUSED_SECONDS / 60:g} minutes"
            raise JobAborted(f"{label} does not run after {minutes}{reasons}{describe}")
        if self._replicas.most_restarts > MAX_RESTARTS:
            times = f"more than {MAX_RESTARTS} times without a new checkpoint"
            losses = self._replicas.losses()
            raise JobAborted(f"{label}: a replica was restarted {times}: {losses}")

    def _failure(self, message: str) -> UserError:
        """Return the error of the replica that most likely caused the failure."""
        label = self._job.label
        failed = self._replicas.most_likely_cause()
        # An earlier loss may be the cause, because the loss of a replica makes the others fail.
        losses = self._replicas.losses(left_out=failed.replica if failed else "")
        before = f"; before that {losses}" if losses else ""
        if failed is None:
            return JobFailed(f"{label} failed: {message}{before}")
        lines = self._logs.last_lines(failed)
        if failed.exit_code == exit_codes.BAD_INPUT and lines:
            return InputError(error_line(lines, printed=True))
        output = "\n".join(lines) or "(no output)"
        logging.error("The last lines of %s:\n%s", failed.replica, output)
        return JobFailed(
            f"{label} failed: {failed.replica} {failed.end_text}: {error_line(lines)}{before}; "
            f"{RUN_AGAIN}"
        )
