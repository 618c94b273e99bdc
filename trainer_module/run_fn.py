"""run_fn, the entry point of TFX's Trainer: FnArgs -> TrainingJob -> model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from core.errors import InputError
from trainer_module.cluster import local
from trainer_module.cluster.tf_config import Cluster
from trainer_module.loop import checkpoint_folders
from trainer_module.settings import CustomConfig, Training, TrainingJob
from trainer_module.task import is_self_explanatory
from trainer_module.training import train


def run_fn(fn_args: Any) -> None:
    """Train and export the model; `training.train` and `cluster.local.run` document the errors."""
    job = make_job(fn_args)
    try:
        if needs_processes(job.training):
            local.run(job)
        else:
            train(job)
    except ValueError as error:
        if not is_self_explanatory(error):
            raise
        raise InputError(str(error)) from None


def needs_processes(training: Training, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process, which has already used TensorFlow, cannot train itself.

    It cannot be one of several processes without TF_CONFIG. It can neither split the CPU nor use
    collective operations, both of which TensorFlow sets up before its first operation.
    """
    if Cluster.from_environ(environ) is not None:
        return False
    collective = training.strategy == "multi_worker_mirrored"
    return training.has_peers or collective or (training.devices or 1) > 1


def make_job(fn_args: Any) -> TrainingJob:
    """Return the job for TFX's FnArgs, whose `custom_config` has the fields of `CustomConfig`."""
    config = CustomConfig.model_validate(fn_args.custom_config)
    training = config.training
    # The results of a Tuner.
    if fn_args.hyperparameters:
        training = training.with_values(fn_args.hyperparameters["values"])
    job = TrainingJob(
        train_files=list(fn_args.train_files),
        eval_files=list(fn_args.eval_files),
        transform_graph=fn_args.transform_graph_path,
        serving_model_dir=fn_args.serving_model_dir or "",
        model_run_dir=fn_args.model_run_dir or "",
        checkpoint_dir="",
        base_model=fn_args.base_model,
        training=training,
        transform=config.transform,
    )
    folder = os.path.join(config.checkpoints, checkpoint_folders.name(job, config.code))
    return job.model_copy(update={"checkpoint_dir": folder})
