"""run_fn: the entry that TFX's Trainer calls, FnArgs -> TrainingJob."""

from __future__ import annotations

from typing import Any

from trainer_module.settings import TrainingJob
from trainer_module.training import train


def run_fn(fn_args: Any) -> None:
    """Trains and exports the model.

    Args:
      fn_args: tfx's FnArgs; `custom_config` holds the sections `training` and `transform` of the
        settings.
    """
    train(
        TrainingJob(
            train_files=list(fn_args.train_files),
            eval_files=list(fn_args.eval_files),
            transform_graph=fn_args.transform_output,
            serving_model_dir=fn_args.serving_model_dir,
            model_run_dir=fn_args.model_run_dir,
            training=fn_args.custom_config["training"],
            transform=fn_args.custom_config["transform"],
        )
    )
