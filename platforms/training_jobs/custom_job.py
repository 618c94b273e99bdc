"""A training as a CustomJob of Vertex AI: make it or find it, follow it, and cancel it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from typing import Any

from absl import logging
from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import CustomJob, JobState
from google.protobuf.duration_pb2 import Duration

from core import exit_codes
from core.errors import InputError
from platforms.google_cloud import api as vertex_api
from platforms.google_cloud.api import ApiError, errors_in_one_line, one_line, retrying
from platforms.training_jobs.settings import CustomJobSettings
from platforms.training_jobs.step import job_name, sigterm_raises
from trainer_module.settings import Training, TrainingJob

LABEL = "training"
"""The label by which a retried step finds the CustomJob of an earlier attempt."""
_COMMAND = ("python", "-m", "trainer_module.task")
_ENDED = (
    JobState.JOB_STATE_SUCCEEDED,
    JobState.JOB_STATE_PARTIALLY_SUCCEEDED,
    JobState.JOB_STATE_FAILED,
    JobState.JOB_STATE_CANCELLED,
    JobState.JOB_STATE_EXPIRED,
)
_ATTEMPTS = 4
"""Attempts to create the CustomJob if it is unknown whether Vertex AI received the request."""
_SECONDS_TO_CANCEL = 15.0
"""Timeout of the cancellation; a container is killed half a minute after SIGTERM."""
_REJECTED_SETTING = re.compile(rf"non-zero status of {exit_codes.BAD_INPUT}\b")
"""The exit code for wrong settings in the message of a failed CustomJob."""


class CustomJobFailed(RuntimeError):
    """A training that failed or exceeded its timeout; the message is one line."""


class _TimedOut(CustomJobFailed):
    """A CustomJob that exceeded its timeout and still runs."""


def make_custom_job(
    job: TrainingJob, job_file: str, settings: CustomJobSettings
) -> types.CustomJob:
    """Return the CustomJob of a training.

    Args:
      job: the training; its strategy determines the replicas.
      job_file: path of `job` as JSON, which every replica reads.
      settings: the settings of the replicas.

    Raises:
      InputError: the GPU in the settings is not an accelerator of Vertex AI.
    """
    return types.CustomJob(
        display_name=settings.display_name,
        labels={"managed_by": "amazon-reviews", LABEL: job_name(job)},
        job_spec=types.CustomJobSpec(
            worker_pool_specs=_worker_pools(job, job_file, settings),
            scheduling=types.Scheduling(
                timeout=Duration(seconds=math.ceil(settings.timeout_seconds)),
                # If workers sum their gradients, the loss of one worker requires a restart of all
                # workers. With parameter servers the lost worker is restarted alone.
                restart_job_on_worker_restart=job.training.strategy != "parameter_server",
            ),
            service_account=settings.service_account or "",
            network=settings.network or "",
        ),
    )


def _worker_pools(
    job: TrainingJob, job_file: str, settings: CustomJobSettings
) -> list[types.WorkerPoolSpec]:
    """Return the pools of the chief, the workers and the parameter servers.

    The order matters: Vertex AI derives TF_CONFIG from it.
    """
    container = types.ContainerSpec(image_uri=settings.image, command=[*_COMMAND, job_file])
    pools = []
    for replicas, gpus in _replicas(job.training, settings.gpus):
        machine = types.MachineSpec(machine_type=settings.machine_type)
        if gpus:
            machine.accelerator_type = _accelerator(settings.gpu_type)
            machine.accelerator_count = gpus
        pools.append(
            types.WorkerPoolSpec(
                machine_spec=machine, replica_count=replicas, container_spec=container
            )
        )
    return pools


def _accelerator(name: str) -> types.AcceleratorType:
    known = types.AcceleratorType.__members__
    if name not in known:
        raise InputError(
            f"cluster.resources.Trainer.gpu_type: {name} is not an accelerator of Vertex AI; known "
            f"are {', '.join(list(known)[1:])}"
        )
    return known[name]


def _replicas(training: Training, gpus: int) -> list[tuple[int, int]]:
    """Return the number of replicas in each pool, and the GPUs of each replica.

    With `parameter_server` the chief only coordinates, and the servers only store variables.
    Otherwise the chief is one of the workers.
    """
    if training.strategy == "parameter_server":
        return [(1, 0), (training.workers, gpus), (training.parameter_servers, 0)]
    return [(1, gpus), (training.workers - 1, gpus)]


def run(
    client: Any,
    parent: str,
    job: CustomJob,
    *,
    timeout_seconds: float,
    poll_seconds: float,
    is_done: Callable[[], bool],
) -> None:
    """Run a CustomJob; return when it has succeeded.

    A CustomJob with the same label belongs to an earlier attempt of the step. If it still runs,
    this function follows it. If it succeeded and `is_done`, this function returns. Otherwise this
    function creates a new CustomJob. It cancels the CustomJob after SIGTERM in the main thread,
    after SIGINT, and after the timeout.

    Args:
      client: a JobServiceClient.
      parent: `projects/PROJECT/locations/REGION`.
      job: the CustomJob to create; its label LABEL is unique to one execution.
      timeout_seconds: timeout from now on, including the time in the queue.
      poll_seconds: seconds between two requests for the state of the CustomJob.
      is_done: returns whether the result of the training exists.

    Raises:
      InputError: Vertex AI or the training refuses a setting.
      CustomJobFailed: the training failed, was cancelled by somebody else, or took too long.
      ApiError: the API did not respond for minutes; the CustomJob is not cancelled.
      SystemExit, KeyboardInterrupt: after SIGTERM or SIGINT.
    """
    with sigterm_raises():
        try:
            deadline = time.monotonic() + timeout_seconds
            name = _create_or_find(client, parent, job, poll_seconds, is_done)
            logging.info("Log of the CustomJob: %s", _log_command(name))
            _follow(client, name, deadline, poll_seconds)
        except _TimedOut as error:
            _cancel(client, parent, job.labels[LABEL])
            raise CustomJobFailed(
                f"{error} within {timeout_seconds / 3600:g} hours "
                "(cluster.training_timeout_hours); run again to continue from the last checkpoint"
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
            logging.info("Following CustomJob %s of an earlier attempt", found.name)
            return str(found.name)
        try:
            with errors_in_one_line("start the training"):
                name = _create(client, parent, job)
        except ApiError as error:
            if attempt == _ATTEMPTS:
                raise
            # Vertex AI may have received the request; then `_find` returns the CustomJob.
            logging.warning("%s; retrying", error)
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
    """Wait while the newest CustomJob with a label is being cancelled; return it, or None."""
    while True:
        jobs = _with_label(client, parent, label, **retrying())
        newest = max(jobs, key=lambda job: job.create_time, default=None)
        if newest is None or newest.state != JobState.JOB_STATE_CANCELLING:
            return newest
        # Its replicas still write checkpoints.
        logging.info("CustomJob %s of an earlier attempt is being cancelled", newest.name)
        time.sleep(poll_seconds)


def _with_label(client: Any, parent: str, label: str, **options: Any) -> list[CustomJob]:
    request = {"parent": parent, "filter": f'labels.{LABEL}="{label}"'}
    with errors_in_one_line("list the CustomJobs"):
        jobs = list(client.list_custom_jobs(request=request, **options))
    return [job for job in jobs if job.labels.get(LABEL) == label]


def _follow(client: Any, name: str, deadline: float, poll_seconds: float) -> None:
    state = None
    while True:
        with errors_in_one_line("read the state of the training"):
            job = client.get_custom_job(name=name, **retrying())
        if job.state != state:
            state = job.state
            logging.info("CustomJob %s: %s", name, _in_words(state))
        if state == JobState.JOB_STATE_SUCCEEDED:
            return
        if state in _ENDED:
            raise _failure(job)
        if time.monotonic() > deadline:
            raise _TimedOut(f"CustomJob {name} ({_in_words(state)}) did not end")
        time.sleep(poll_seconds)


def _failure(job: CustomJob) -> Exception:
    message = " ".join(job.error.message.split()) or "no error message from Vertex AI"
    log = _log_command(job.name)
    if _REJECTED_SETTING.search(message):
        return InputError(
            f"the training rejected a setting: {message}; the log names the setting: {log}"
        )
    return CustomJobFailed(
        f"CustomJob {job.name} {_in_words(job.state)}: {message}; log: {log}; run again to "
        "continue from the last checkpoint"
    )


def _in_words(state: JobState) -> str:
    """Return `failed` for `JOB_STATE_FAILED`."""
    return JobState(state).name.removeprefix("JOB_STATE_").lower().replace("_", " ")


def _log_command(name: str) -> str:
    return f"gcloud ai custom-jobs stream-logs {name}"


def _cancel(client: Any, parent: str, label: str) -> None:
    """Cancel the running CustomJobs with a label. A signal may arrive before their names do."""
    options = {"retry": None, "timeout": _SECONDS_TO_CANCEL / 2}
    try:
        for job in _with_label(client, parent, label, **options):
            if job.state not in _ENDED:
                logging.info("Cancelling CustomJob %s", job.name)
                with errors_in_one_line("cancel the training"):
                    client.cancel_custom_job(name=job.name, **options)
    except (InputError, ApiError) as error:
        logging.error(
            "A CustomJob with the label %s=%s may still run: %s", LABEL, label, one_line(error)
        )
