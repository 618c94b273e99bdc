"""The model that the settings choose: one of the package, or a file of the user's project."""

from __future__ import annotations

from core.code_file import CodeError, CodeFile
from core.errors import ConfigError
from pipeline.config import PipelineConfig
from pipeline.label_setting import task_options
from pipeline.project import find_model
from preprocessing.labels import Labels

_UNKNOWN = Labels(("first", "second", "third"))
"""Classes in place of those that only the files contain."""


def model_file(config: PipelineConfig) -> CodeFile | None:
    """Return the file of the model in the user's project; None for a model of the package.

    Raises:
      ConfigError: there is no such model, or its file cannot be read.
    """
    return find_model(config.project, config.training.model)


def check_model(config: PipelineConfig) -> None:
    """Check the hyperparameters of the model, and build the model if it is one of a project.

    Raises:
      ConfigError: the model has no such hyperparameter, or does not allow its value, or the
        settings leave nothing to the Tuner.
      CodeError: the file of the model has an error.
    """
    # The models import TensorFlow, which takes seconds.
    from trainer_module import models
    from trainer_module.models.search_space import free_values

    file = model_file(config)
    classes = task_options(config.data.labels).classes
    try:
        models.hyperparameters(config.training, file)
        if config.training.tuner_trials:
            free_values(models.load(config.training.model, file).SEARCH_SPACE, config.training)
        if file:
            labels = Labels(classes) if classes else _UNKNOWN
            models.try_out(config.training, labels, config.transform, file)
    except CodeError:
        raise
    except ValueError as error:
        raise ConfigError(str(error)) from None
