"""The processes of a training: how many there are, and the file that each of them reads."""

from __future__ import annotations

import os
from pathlib import Path

from trainer_module.distribute import cluster
from trainer_module.settings import Training, TrainingJob

JOB_FILE = "job.json"
"""The file in `model_run_dir` with the job, the argument of `python -m trainer_module.task`."""


def has_peers(training: Training) -> bool:
    """Return whether a training needs more than one process."""
    return training.strategy == "parameter_server" or training.workers > 1


def count_processes(training: Training) -> dict[str, int]:
    """Return task type -> number of processes that a training needs."""
    if training.strategy == "parameter_server":
        return {
            cluster.CHIEF: 1,
            cluster.WORKER: training.workers,
            cluster.PS: training.parameter_servers,
        }
    return {cluster.WORKER: training.workers} if has_peers(training) else {cluster.CHIEF: 1}


def write_job(job: TrainingJob) -> str:
    """Write the job to `JOB_FILE`, atomically; return the path of the file."""
    path = os.path.join(job.model_run_dir, JOB_FILE)
    unfinished = f"{path}.new"
    text = job.model_dump_json(indent=2)
    if "://" in path:
        import tensorflow as tf

        tf.io.gfile.makedirs(job.model_run_dir)
        with tf.io.gfile.GFile(unfinished, "w") as file:
            file.write(text)
        tf.io.gfile.rename(unfinished, path, overwrite=True)
    else:
        os.makedirs(job.model_run_dir, exist_ok=True)
        Path(unfinished).write_text(text, encoding="utf-8")
        os.replace(unfinished, path)
    return path
