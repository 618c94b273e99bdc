"""The checks in the process of a local run: credentials, models, golden sentences, GPUs, input.

They read files and import TensorFlow. `platforms.local.places.prepare` has the fast ones.
"""

from __future__ import annotations

import os

from components.run_report.history import last_settings
from components.serving_check.settings import read_golden
from core.errors import ConfigError
from core.metadata import open_store
from pipeline.config import PipelineConfig, check_hyperparameters
from pipeline.destinations import destination_paths
from pipeline.inputs import input_files, read_options
from platforms.checks import is_bucket
from preprocessing.reading.layouts import decide_layouts
from trainer_module.cluster import resources


def check(config: PipelineConfig) -> None:
    """Check what a run reads: credentials, earlier models, golden sentences, GPUs and the input.

    Args:
      config: the settings of the run, for which `platforms.local.places.prepare` was called.

    Raises:
      ConfigError: there are no credentials for a bucket, the destination is for the models of
        other data, or a setting does not fit the model, the GPUs or the golden sentences.
      InputError: an input file or the golden sentences cannot be read, or have another layout.
    """
    places = {f"paths.{key}": place for key, place in config.paths.model_dump().items()}
    places |= destination_paths(config)
    places["data.input_base"] = config.data.input_base or ""
    for key, place in places.items():
        if is_bucket(place):
            # Google's client takes a while to import.
            from platforms.google_cloud.api import find_credentials

            find_credentials(key, place)
    _check_same_pipeline(config)
    read_golden(config.serving_check.golden)
    try:
        resources.check_devices(config.training, os.environ)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    check_hyperparameters(config)
    decide_layouts(input_files(config), read_options(config))


def _check_same_pipeline(config: PipelineConfig) -> None:
    """Check that the model of this run would not be served instead of that of another pipeline.

    Without `--config` the sample runs, also in the folder of a user's own runs.

    Raises:
      ConfigError: it would be served instead.
    """
    location, destination = config.paths.metadata, destination_paths(config)
    if not destination or not os.path.exists(location):
        return
    before = last_settings(open_store(location), destination)
    if not before:
        return
    data = before["data"]["input_base"]
    if before["name"] != config.name or (data and not config.data.input_base):
        now = config.data.input_base or "the sample"
        key, place = next(iter(destination.items()))
        raise ConfigError(
            f"{key}: {place} is for the models of {before['name']} on {data or 'the sample'}, and "
            f"this is a run of {config.name} on {now}; pass --config FILE for other settings, or "
            "set paths.root to another folder"
        )
