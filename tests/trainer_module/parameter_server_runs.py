"""Trainings under parameter servers whose tasks share a process, to make many of them affordable.

A process for each task would import TensorFlow six times for each training. The servers of this
process execute the same operations, and the operations of different workers overlap.

`python -m tests.trainer_module.parameter_server_runs JOB COUNT` trains JOB with the seeds from 1 to
COUNT, and prints the eval loss of each training as JSON after RESULT.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import tensorflow as tf

from trainer_module.cluster import resources
from trainer_module.cluster.tf_config import CHIEF
from trainer_module.settings import TrainingJob
from trainer_module.training import train_model

_THREADS = 16
"""Inter-op threads, which all servers share; with fewer, a step that waits may block all others."""


def main(job_file, count):
    job = TrainingJob.model_validate_json(Path(job_file).read_text())
    places = resources.allocate(resources.count_processes(job.training))
    [chief] = [place for place in places if place.task.task_type == CHIEF]
    os.environ |= chief.environ
    servers = [
        tf.distribute.Server(
            tf.train.ClusterSpec(place.task.spec),
            job_name=place.task.task_type,
            task_index=place.task.task_index,
            protocol="grpc",
            config=tf.compat.v1.ConfigProto(inter_op_parallelism_threads=_THREADS),
        )
        for place in places
        if place is not chief
    ]
    assert len(servers) == job.training.workers + job.training.parameter_servers
    losses = [_eval_loss(job, chief.task, seed) for seed in range(1, count + 1)]
    print("RESULT", json.dumps(losses), flush=True)
    # The servers have no end of their own.
    os._exit(0)


def _eval_loss(job, task, seed):
    with tempfile.TemporaryDirectory() as folder:
        update = {
            "model_run_dir": f"{folder}/run",
            "checkpoint_dir": f"{folder}/checkpoints",
            "training": job.training.model_copy(update={"seed": seed}),
        }
        return train_model(job.model_copy(update=update), task).metrics["val_loss"]


if __name__ == "__main__":
    # Read when TensorFlow executes its first operation.
    os.environ["TF_NUM_INTEROP_THREADS"] = str(_THREADS)
    main(sys.argv[1], int(sys.argv[2]))
