"""The name of the job of a training, which a retried step finds again."""

from __future__ import annotations

import hashlib
import os

from trainer_module.settings import TrainingJob


def job_name(job: TrainingJob) -> str:
    """Return the name of a training's job, which every attempt of one execution shares.

    The name is a DNS-1035 label of 31 characters. The controllers append the replica to it for the
    names of the pods.
    """
    identity = f"{os.path.basename(job.checkpoint_dir)}\0{job.serving_model_dir}"
    return f"amazon-reviews-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
