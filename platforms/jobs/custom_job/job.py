"""A training as a CustomJob of Vertex AI: its worker pools, and what each replica runs."""

from __future__ import annotations

import math

from google.cloud.aiplatform_v1 import types
from google.protobuf.duration_pb2 import Duration

from core.errors import InputError
from platforms.jobs.custom_job.settings import CustomJobSettings
from platforms.jobs.tfjob.manifest import job_name
from trainer_module.settings import Training, TrainingJob

LABEL = "training"
"""The label that a retried step finds the CustomJob of an earlier try by."""
_COMMAND = ("python", "-m", "trainer_module.task")


def make_custom_job(
    job: TrainingJob, job_file: str, settings: CustomJobSettings
) -> types.CustomJob:
    """Return the CustomJob of a training.

    Args:
      job: what is trained; its strategy decides which replicas there are.
      job_file: where `job` is as JSON, for all replicas to read.
      settings: where the replicas run.

    Raises:
      InputError: Vertex AI has no such GPU.
    """
    return types.CustomJob(
        display_name=settings.display_name,
        labels={"managed_by": "amazon-reviews", LABEL: job_name(job)},
        job_spec=types.CustomJobSpec(
            worker_pool_specs=_worker_pools(job, job_file, settings),
            scheduling=types.Scheduling(
                timeout=Duration(seconds=math.ceil(settings.timeout_seconds)),
                # Workers that compute gradients together cannot go on without one of them, nor
                # take a new one in. Beside parameter servers they can.
                restart_job_on_worker_restart=job.training.strategy != "parameter_server",
            ),
            service_account=settings.service_account or "",
            network=settings.network or "",
        ),
    )


def _worker_pools(
    job: TrainingJob, job_file: str, settings: CustomJobSettings
) -> list[types.WorkerPoolSpec]:
    """Chief, workers, parameter servers: Vertex AI sets TF_CONFIG by the order of the pools."""
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
            f"cluster.resources.Trainer.gpu_type: {name} is no accelerator of Vertex AI; known "
            f"are {', '.join(list(known)[1:])}"
        )
    return known[name]


def _replicas(training: Training, gpus: int) -> list[tuple[int, int]]:
    """The number of replicas in each pool, and the GPUs of each.

    Under `parameter_server` the chief only coordinates, and the servers only keep variables.
    Otherwise the chief is one of the workers.
    """
    if training.strategy == "parameter_server":
        return [(1, 0), (training.workers, gpus), (training.parameter_servers, 0)]
    return [(1, gpus), (training.workers - 1, gpus)]
