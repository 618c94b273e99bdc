"""A CustomJob from its creation to its end: created or found again, followed, cancelled."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from absl import logging
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from core.errors import InputError
from platforms.google_cloud import api as vertex_api
from platforms.google_cloud.api import ApiError, errors_in_one_line, one_line, retrying
from platforms.jobs.custom_job.job import LABEL
from platforms.jobs.step import sigterm_raises
from trainer_module.distribute.local_cluster import BAD_SETTINGS

_ENDED = (
    JobState.JOB_STATE_SUCCEEDED,
    JobState.JOB_STATE_PARTIALLY_SUCCEEDED,
    JobState.JOB_STATE_FAILED,
    JobState.JOB_STATE_CANCELLED,
    JobState.JOB_STATE_EXPIRED,
)
_ATTEMPTS = 4
"""To create the CustomJob, where it is not known whether Vertex AI got the request."""
_SECONDS_TO_CANCEL = 15.0
"""When the step is cancelled; its container is killed half a minute after SIGTERM."""
_BAD_SETTINGS = re.compile(rf"non-zero status of {BAD_SETTINGS}\b")
"""The end of a replica in the message of a failed CustomJob."""


class CustomJobFailed(RuntimeError):
    """The training failed, or did not end in time; the message is one line."""


class _TooLate(CustomJobFailed):
    """The CustomJob has had its time."""


def run(
    client: Any,
    parent: str,
    job: CustomJob,
    *,
    timeout_seconds: float,
    poll_seconds: float,
    is_done: Callable[[], bool],
) -> None:
    """Return when the CustomJob has succeeded.

    A CustomJob with the same label was created by an earlier try of the step: it is followed if it
    runs, enough if it succeeded and `is_done`. Otherwise there is a new one. It is cancelled when
    this process gets SIGTERM in its main thread or SIGINT, and when the time is up.

    Args:
      client: a JobServiceClient.
      parent: `projects/PROJECT/locations/REGION`.
      job: what is created; its label LABEL is that of one execution.
      timeout_seconds: how long it may take from now on, the time in the queue included.
      poll_seconds: between two looks at it.
      is_done: whether what the training is for is there.

    Raises:
      InputError: Vertex AI or the training refuses a setting.
      CustomJobFailed: the training failed, was cancelled by somebody else, or took too long.
      ApiError: the API did not answer for minutes; the CustomJob is left alone.
      SystemExit, KeyboardInterrupt: SIGTERM, SIGINT came.
    """
    with sigterm_raises():
        try:
            deadline = time.monotonic() + timeout_seconds
            name = _create_or_find(client, parent, job, poll_seconds, is_done)
            logging.info("Its log: %s", _log_command(name))
            _follow(client, name, deadline, poll_seconds)
        except _TooLate as late:
            _cancel(client, parent, job.labels[LABEL])
            raise CustomJobFailed(
                f"{late} within {timeout_seconds / 3600:g} hours (vertex.training_timeout_hours); "
                "run again to continue from the last checkpoint"
            ) from None
        except (SystemExit, KeyboardInterrupt):
            _cancel(client, parent, job.labels[LABEL])
            raise


def _create_or_find(
    client: Any, parent: str, job: CustomJob, poll_seconds: float, is_done: Callable[[], bool]
) -> str:
    """Return the resource name of the CustomJob to follow."""
    for attempt in range(1, _ATTEMPTS + 1):
        found = _find(client, parent, job.labels[LABEL], poll_seconds)
        if found and (
            found.state not in _ENDED or (found.state == JobState.JOB_STATE_SUCCEEDED and is_done())
        ):
            logging.info("CustomJob %s of an earlier try is there: following it", found.name)
            return str(found.name)
        try:
            with errors_in_one_line("start the training"):
                name = _create(client, parent, job)
        except ApiError as error:
            if attempt == _ATTEMPTS:
                raise
            # The request may have arrived all the same: the next look shows.
            logging.warning("%s; looking again", error)
            time.sleep(poll_seconds)
        else:
            logging.info("Created CustomJob %s", name)
            return name
    raise AssertionError("unreachable")


def _create(client: Any, parent: str, job: CustomJob) -> str:
    created = client.create_custom_job(
        parent=parent, custom_job=job, retry=None, timeout=vertex_api.REQUEST_SECONDS
    )
    return str(created.name)


def _find(client: Any, parent: str, label: str, poll_seconds: float) -> CustomJob | None:
    """Return the newest CustomJob of the execution, once it is not being cancelled."""
    while True:
        jobs = _with_label(client, parent, label, **retrying())
        newest = max(jobs, key=lambda job: job.create_time, default=None)
        if newest is None or newest.state != JobState.JOB_STATE_CANCELLING:
            return newest
        # Its replicas still write checkpoints.
        logging.info("CustomJob %s of an earlier try is being cancelled", newest.name)
        time.sleep(poll_seconds)


def _with_label(client: Any, parent: str, label: str, **how: Any) -> list[CustomJob]:
    request = {"parent": parent, "filter": f'labels.{LABEL}="{label}"'}
    with errors_in_one_line("list the CustomJobs"):
        jobs = list(client.list_custom_jobs(request=request, **how))
    return [job for job in jobs if job.labels.get(LABEL) == label]


def _follow(client: Any, name: str, deadline: float, poll_seconds: float) -> None:
    state = None
    while True:
        with errors_in_one_line("tell the state of the training"):
            job = client.get_custom_job(name=name, **retrying())
        if job.state != state:
            state = job.state
            logging.info("CustomJob %s: %s", name, _in_words(state))
        if state == JobState.JOB_STATE_SUCCEEDED:
            return
        if state in _ENDED:
            raise _failure(job)
        if time.monotonic() > deadline:
            raise _TooLate(f"CustomJob {name} ({_in_words(state)}) did not end")
        time.sleep(poll_seconds)


def _failure(job: CustomJob) -> Exception:
    message = " ".join(job.error.message.split()) or "Vertex AI gives no reason"
    log = f"its log: {_log_command(job.name)}"
    if _BAD_SETTINGS.search(message):
        return InputError(f"the training finds a setting wrong, which {log} names: {message}")
    return CustomJobFailed(
        f"CustomJob {job.name} {_in_words(job.state)}: {message}; {log}; run again to continue "
        "from the last checkpoint"
    )


def _in_words(state: JobState) -> str:
    """`JOB_STATE_FAILED` -> `failed`."""
    return JobState(state).name.removeprefix("JOB_STATE_").lower().replace("_", " ")


def _log_command(name: str) -> str:
    return f"gcloud ai custom-jobs stream-logs {name}"


def _cancel(client: Any, parent: str, label: str) -> None:
    """Cancel what runs, found by its label: a signal may come before its name is known."""
    how = {"retry": None, "timeout": _SECONDS_TO_CANCEL / 2}
    try:
        for job in _with_label(client, parent, label, **how):
            if job.state not in _ENDED:
                logging.info("Cancelling CustomJob %s", job.name)
                with errors_in_one_line("cancel the training"):
                    client.cancel_custom_job(name=job.name, **how)
    except (InputError, ApiError) as error:
        logging.error(
            "A CustomJob with the label %s=%s may still run: %s", LABEL, label, one_line(error)
        )
