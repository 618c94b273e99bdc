"""A training as a CustomJob of Vertex AI: its worker pools, and the command of each replica."""

from __future__ import annotations

import math

from google.cloud.aiplatform_v1 import types
from google.protobuf.duration_pb2 import Duration

from core.errors import InputError
from platforms.jobs.custom_job.settings import CustomJobSettings
from platforms.jobs.step import job_name
from trainer_module.settings import Training, TrainingJob

LABEL = "training"
"""The label by which a retried step finds the CustomJob of an earlier attempt."""
_COMMAND = ("python", "-m", "trainer_module.task")


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
