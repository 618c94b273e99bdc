"""What can be found wrong before anything starts: credentials, folders, the input files' format."""

from __future__ import annotations

import os

from pipeline.config import PipelineConfig
from pipeline.google_credentials import find_credentials
from pipeline.inputs import input_files, read_options
from pipeline.places import check_places
from pipeline.settings_file import ConfigError
from pipeline.target_checks import check_target
from preprocessing.readers import decide_layouts
from preprocessing.sources import find_sources
from trainer_module import machine


def check(config: PipelineConfig) -> None:
    """Checks `config` against this machine.

    Raises:
      ConfigError: a gs:// path without credentials, a folder that cannot be written, a
        hyperparameter that the model does not know, or a training that this machine cannot do.
      InputError: no file, an unreadable one, one of no known format, or files that contradict
        or repeat each other.
    """
    check_target(config, "local")
    places = {
        "paths.root": config.paths.root,
        "paths.metadata": config.paths.metadata,
        "paths.serving": config.paths.serving,
        "data.input_base": config.data.input_base or "",
    }
    for key, place in places.items():
        if place.startswith("gs://"):
            find_credentials(key, place)
    check_places(config)
    try:
        machine.check(config.training, os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    check_hyperparameters(config)
    decide_layouts(find_sources(*input_files(config)), read_options(config))


def check_hyperparameters(config: PipelineConfig) -> None:
    """Raises ConfigError where the model does not know a hyperparameter, or not that value."""
    # A model's file imports TensorFlow, and not every command has to wait for that.
    from trainer_module import models

    try:
        models.hyperparameters(config.training.model, config.training.hyperparameters)
    except ValueError as error:
        raise ConfigError(str(error)) from None
