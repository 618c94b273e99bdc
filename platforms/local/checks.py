"""Checks of the settings against what this machine supports; this module imports no TFX."""

from __future__ import annotations

import os

import sample_data
from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms import flink
from platforms.checks import check_dataflow, check_splits, places
from serving.signing.settings import private_key


def check(config: PipelineConfig) -> None:
    """Check the settings of a local run.

    Raises:
      ConfigError: a setting is missing or impossible here. The message names its key.
    """
    check_splits(config)
    if config.push.destination == "vertex":
        raise ConfigError(
            "push.destination: vertex requires --target vertex; set filesystem or none"
        )
    check_dataflow(config)
    sample = {"data.input_base": os.path.dirname(sample_data.__file__)}
    flink.check_paths(config, {**sample, **places(config)}.items())
    flink.check_local(config)
    if config.signing.private_key:
        private_key(config.signing.private_key)
