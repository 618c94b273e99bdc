"""run_fn, the entry point of TFX's Trainer: FnArgs -> TrainingJob -> model."""

from __future__ import annotations

import os
from typing import Any

from core.errors import InputError
from trainer_module.cluster import exits, local
from trainer_module.cluster.tf_config import Cluster
from trainer_module.loop import checkpoint_folders
from trainer_module.settings import CustomConfig, Training, TrainingJob, TrainingSpec
from trainer_module.training import train


def run_fn(fn_args: Any) -> None:
    """Train and export the model.

    Args:
      fn_args: TFX's FnArgs, whose `custom_config` has the fields of `CustomConfig`.

    Raises:
      InputError: TF_CONFIG, a setting or the Examples are wrong; the message is one line.
      Exception: the other errors of `training.train` and `cluster.local.run`.
    """  # noqa: DOC501
    job = make_job(fn_args)
    try:
        cluster = Cluster.from_environ(os.environ)
        if needs_processes(job.training, cluster):
            local.run(job)
        else:
            train(job, cluster)
    except ValueError as error:
        if not exits.is_self_explanatory(error):
            raise
        raise InputError(str(error)) from None


def needs_processes(training: Training, cluster: Cluster | None) -> bool:
    """Return whether other processes must train instead of this one.

    This process has already used TensorFlow. TensorFlow can split the CPU and set up collective
    operations only before its first operation. A training in several processes without TF_CONFIG
    also requires new processes.

    Args:
      training: the settings.
      cluster: the cluster of TF_CONFIG; None: there is none.
    """
    if cluster is not None:
        return False
    collective = training.strategy == "multi_worker_mirrored"
    return training.has_peers or collective or (training.devices or 1) > 1


def make_job(fn_args: Any) -> TrainingJob:
    """Return the job of a Trainer or a Tuner.

    Args:
      fn_args: TFX's FnArgs, whose `custom_config` has the fields of `CustomConfig`.

    Raises:
      pydantic.ValidationError: `custom_config` lacks a field, or has a wrong value.
      tensorflow.errors.OpError: a file of the Examples, of the transform graph or of the base model
        cannot be read; the name of the folder of checkpoints depends on their content.
    """
    config = CustomConfig.model_validate(fn_args.custom_config)
    spec = {name: getattr(config, name) for name in TrainingSpec.model_fields}
    # The results of a Tuner.
    if fn_args.hyperparameters:
        spec["training"] = config.training.with_values(fn_args.hyperparameters["values"])
    job = TrainingJob(
        **spec,
        train_files=list(fn_args.train_files),
        eval_files=list(fn_args.eval_files),
        transform_graph=fn_args.transform_graph_path,
        serving_model_dir=fn_args.serving_model_dir or "",
        model_run_dir=fn_args.model_run_dir or "",
        checkpoint_dir="",
        base_model=fn_args.base_model,
    )
    folder = os.path.join(config.checkpoints, checkpoint_folders.folder_name(job, config.code))
    return job.model_copy(update={"checkpoint_dir": folder})
