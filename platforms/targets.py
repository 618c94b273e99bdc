"""The platforms by their names in `--target`; only `make_platform` imports TFX."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import sample_data
from pipeline.config import PipelineConfig
from platforms.checks import Target, check_platform, places
from platforms.flink import checks as flink

if TYPE_CHECKING:
    from pipeline.platform import Platform


def check_target(config: PipelineConfig, target: Target) -> None:
    """Check `config` against what `target` supports.

    Raises:
      ConfigError: a setting is missing or impossible there. The message names its key.
    """
    check_platform(config, target)
    if target == "local":
        sample = {"data.input_base": os.path.dirname(sample_data.__file__)}
        flink.check_paths(config, {**sample, **places(config)}.items())
        flink.check_local(config)
    else:
        flink.check_compiled(config)


def make_platform(config: PipelineConfig, target: Target) -> Platform:
    """Return the platform that `create_pipeline` builds the pipeline for."""
    module = import_module(f"platforms.{target}.platform")
    platform: Platform = getattr(module, target.capitalize())(config)
    return platform
