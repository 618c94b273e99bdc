"""What can be found wrong before anything starts: credentials, folders, the input files' format."""

from __future__ import annotations

import os

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from pipeline.hyperparameters import check_hyperparameters
from pipeline.inputs import input_files, read_options
from platforms.google_cloud.credentials import find_credentials
from platforms.local import checks
from platforms.local.places import check_places
from preprocessing.reading.find import find_sources
from preprocessing.reading.layouts import decide_layouts
from trainer_module.distribute import machine


def check(config: PipelineConfig) -> None:
    """Checks `config` against this machine.

    Raises:
      ConfigError: a gs:// path without credentials, a folder that cannot be written, a
        hyperparameter that the model does not know, or a training that this machine cannot do.
      InputError: no file, an unreadable one, one of no known format, or files that contradict
        or repeat each other.
    """
    checks.check(config)
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
