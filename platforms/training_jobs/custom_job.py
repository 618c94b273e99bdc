"""Run a training as a CustomJob of Vertex AI: create it or find it, follow it, and cancel it."""

from __future__ import annotations

import math
import re
import time
from typing import Any

from absl import logging
from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.aiplatform_v1.types import CustomJob, JobState
from google.protobuf.duration_pb2 import Duration

from core import exit_codes
from core.errors import InputError
from platforms.training_jobs.job import (
    CustomJobSettings,
    JobFailed,
    command,
    exceeded_timeout,
    is_done,
    job_ends_with_step,
    job_name,
    replica_groups,
)
from platforms.vertex import api as vertex_api
from platforms.vertex.api import ApiError, errors_in_one_line, retrying
from trainer_module.cluster.exits import RUN_AGAIN
from trainer_module.settings import TrainingJob

LABEL = "training"
"""The key of a CustomJob's label, whose value is the name of the training."""
_ENDED = (
    JobState.JOB_STATE_SUCCEEDED,
    JobState.JOB_STATE_PARTIALLY_SUCCEEDED,
    JobState.JOB_STATE_FAILED,
    JobState.JOB_STATE_CANCELLED,
    JobState.JOB_STATE_EXPIRED,
)
_ATTEMPTS = 4
"""Number of attempts to create the CustomJob if Vertex AI does not respond."""
_SECONDS_TO_CANCEL = 15.0
"""Timeout of the cancellation; a container is killed half a minute after SIGTERM."""
_REJECTED_SETTING = re.compile(rf"non-zero status of {exit_codes.BAD_INPUT}\b")
"""The text in the message of a CustomJob that failed with the exit code for wrong settings."""


def train(job: TrainingJob, job_file: str, settings: CustomJobSettings) -> None:
    """Run a training as a CustomJob; return when it has succeeded.

    A retried step finds the CustomJob of the earlier attempt by its label. The step follows this
    CustomJob if it still runs, or if it succeeded and its model is complete. This function cancels
    the CustomJob after SIGTERM in the main thread, after SIGINT and after the timeout.

    Args:
      job: the training.
      job_file: the path of `job` in a file, which every replica reads.
      settings: the project, the machines and the timeout.

    Raises:
      InputError: Vertex AI refuses the CustomJob, there are no credentials, or the training rejects
        a setting.
      ApiError: Vertex AI does not respond before the timeout of a request.
      JobFailed: the training failed.
      JobAborted: the training exceeded its timeout.
    """  # noqa: DOC501
    client = vertex_api.connect(JobServiceClient, settings.region)
    made = make_custom_job(job, job_file, settings)
    with job_ends_with_step(lambda: _cancel(client, settings, made.labels[LABEL])):
        deadline = time.monotonic() + settings.timeout_seconds
        name = _create_or_find(client, made, job, settings)
        logging.info("Log of the CustomJob: %s", _log_command(name))
        state = ""
        while True:
            with errors_in_one_line("read the state of the training"):
                found = client.get_custom_job(name=name, **retrying())
            before = state
            state = JobState(found.state).name.removeprefix("JOB_STATE_").lower()
            if state != before:
                logging.info("CustomJob %s: %s", name, state)
            if found.state == JobState.JOB_STATE_SUCCEEDED:
                return
            if found.state in _ENDED:
                raise _failure(found, state)
            if time.monotonic() > deadline:
                raise exceeded_timeout(f"CustomJob {name} ({state})", settings)
            time.sleep(settings.poll_seconds)


def make_custom_job(job: TrainingJob, job_file: str, settings: CustomJobSettings) -> CustomJob:
    """Return the CustomJob of a training, which `train` creates.

    Args:
      job: the training.
      job_file: the path of `job` in a file, which every replica reads.
      settings: the machines and the timeout.

    Raises:
      InputError: Vertex AI has no such GPU.
    """
    container = types.ContainerSpec(image_uri=settings.image, command=command(job_file))
    return CustomJob(
        display_name=settings.display_name,
        labels={"managed_by": "amazon-reviews", LABEL: job_name(job)},
        job_spec=types.CustomJobSpec(
            # Vertex AI derives TF_CONFIG from the order: chief, workers, parameter servers.
            worker_pool_specs=[
                types.WorkerPoolSpec(
                    machine_spec=_machine(settings, group.gpus),
                    replica_count=group.count,
                    container_spec=container,
                )
                for group in replica_groups(job.training, settings.gpus)
            ],
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


def _machine(settings: CustomJobSettings, gpus: int) -> types.MachineSpec:
    machine = types.MachineSpec(machine_type=settings.machine_type, accelerator_count=gpus)
    if gpus:
        known = types.AcceleratorType.__members__
        if settings.gpu_type not in known:
            raise InputError(
                f"cluster.resources.Trainer.gpu_type: {settings.gpu_type} is not an accelerator of "
                f"Vertex AI; known are {', '.join(list(known)[1:])}"
            )
        machine.accelerator_type = known[settings.gpu_type]
    return machine


def _create_or_find(
    client: Any, made: CustomJob, job: TrainingJob, settings: CustomJobSettings
) -> str:
    """Find the CustomJob to follow, or create it; return its name.

    Raises:
      InputError: Vertex AI refuses the CustomJob.
      ApiError: Vertex AI does not respond.
    """
    label = made.labels[LABEL]
    poll_seconds = settings.poll_seconds
    attempt = 0
    while True:
        attempt += 1
        found = _newest(client, settings, label)
        while found and found.state == JobState.JOB_STATE_CANCELLING:
            # Its replicas still write checkpoints.
            logging.info("CustomJob %s of an earlier attempt is being cancelled", found.name)
            time.sleep(poll_seconds)
            found = _newest(client, settings, label)
        succeeded = found and found.state == JobState.JOB_STATE_SUCCEEDED
        if found and (found.state not in _ENDED or (succeeded and is_done(job))):
            logging.info("Following CustomJob %s of an earlier attempt", found.name)
            return str(found.name)
        try:
            with errors_in_one_line("start the training"):
                created = client.create_custom_job(
                    parent=vertex_api.location(settings.project, settings.region),
                    custom_job=made,
                    retry=None,
                    timeout=vertex_api.REQUEST_SECONDS,
                )
        except ApiError as error:
            if attempt == _ATTEMPTS:
                raise
            # Vertex AI may have received the request; then `_newest` returns the CustomJob.
            logging.warning("%s; retrying", error)
            time.sleep(poll_seconds)
        else:
            logging.info("Created CustomJob %s", created.name)
            return str(created.name)


def _newest(client: Any, settings: CustomJobSettings, label: str) -> CustomJob | None:
    found = _with_label(client, settings, label, **retrying())
    return max(found, key=lambda job: job.create_time, default=None)


def _with_label(
    client: Any, settings: CustomJobSettings, label: str, **options: Any
) -> list[CustomJob]:
    parent = vertex_api.location(settings.project, settings.region)
    request = {"parent": parent, "filter": f'labels.{LABEL}="{label}"'}
    with errors_in_one_line("list the CustomJobs"):
        return list(client.list_custom_jobs(request=request, **options))


def _failure(job: CustomJob, state: str) -> Exception:
    message = " ".join(job.error.message.split()) or "no error message from Vertex AI"
    log = _log_command(job.name)
    if _REJECTED_SETTING.search(message):
        return InputError(
            f"the training rejected a setting: {message}; the log names the setting: {log}"
        )
    return JobFailed(f"CustomJob {job.name} {state}: {message}; log: {log}; {RUN_AGAIN}")


def _log_command(name: str) -> str:
    return f"gcloud ai custom-jobs stream-logs {name}"


def _cancel(client: Any, settings: CustomJobSettings, label: str) -> None:
    """Cancel the running CustomJobs with a label, and log an error if that fails.

    The name of the CustomJob may be unknown, because a signal may arrive before the response to the
    request that creates it.
    """
    options = {"retry": None, "timeout": _SECONDS_TO_CANCEL / 2}
    try:
        for job in _with_label(client, settings, label, **options):
            if job.state not in _ENDED:
                logging.info("Cancelling CustomJob %s", job.name)
                with errors_in_one_line("cancel the training"):
                    client.cancel_custom_job(name=job.name, **options)
    except (InputError, ApiError) as error:
        logging.error("A CustomJob with the label %s=%s may still run: %s", LABEL, label, error)
