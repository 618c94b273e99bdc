"""The checks before a local run starts: credentials, folders, hyperparameters, golden sentences and
input files.
"""

from __future__ import annotations

import os

from components.serving_check.settings import read_golden
from core.errors import ConfigError
from pipeline.config import PipelineConfig, check_hyperparameters
from pipeline.inputs import input_files, read_options
from platforms.google_cloud.credentials import find_credentials
from platforms.local.places import check_places
from platforms.targets import check_target
from preprocessing.reading.files import find_sources
from preprocessing.reading.layouts import decide_layouts
from trainer_module.cluster import resources


def check(config: PipelineConfig) -> None:
    """Check the settings and the input on this machine.

    Raises:
      ConfigError: a gs:// path without credentials, a folder that is not writable, an unknown
        hyperparameter, a wrong golden sentence, or a training that this machine does not support.
      InputError: there is no input file, a file is unreadable or of an unknown format, or files
        contradict or repeat each other.
    """
    check_target(config, "local")
    places = {
        "paths.root": config.paths.root,
        "paths.metadata": config.paths.metadata,
        "paths.serving": config.paths.serving,
        "paths.checkpoints": config.paths.checkpoints,
        "data.input_base": config.data.input_base or "",
    }
    for key, place in places.items():
        if place.startswith("gs://"):
            find_credentials(key, place)
    check_places(config)
    read_golden(config.serving_check.golden)
    try:
        resources.check(config.training, os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    check_hyperparameters(config)
    decide_layouts(find_sources(*input_files(config)), read_options(config))
