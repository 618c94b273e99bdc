"""The check of `training.hyperparameters`."""

from __future__ import annotations

from core.errors import ConfigError
from pipeline.config import PipelineConfig


def check_hyperparameters(config: PipelineConfig) -> None:
    """Raise ConfigError if the model has no such hyperparameter, or does not allow its value."""
    # The module of a model imports TensorFlow, which takes seconds.
    from trainer_module import models

    try:
        models.hyperparameters(config.training.model, config.training.hyperparameters)
    except ValueError as error:
        raise ConfigError(str(error)) from None
