"""The platforms by their names in `--target`; only `make_platform` imports TFX."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pipeline.config import PipelineConfig
from platforms.checks import Target
from platforms.kubeflow import checks as kubeflow
from platforms.local import checks as local
from platforms.vertex import checks as vertex

if TYPE_CHECKING:
    from pipeline.platform import Platform

_CHECKS = {"local": local.check, "vertex": vertex.check, "kubeflow": kubeflow.check}


def check_target(config: PipelineConfig, target: Target) -> None:
    """Check `config` against what `target` supports.

    Raises:
      ConfigError: a setting is missing or impossible there. The message names its key.
    """
    _CHECKS[target](config)


def make_platform(config: PipelineConfig, target: Target) -> Platform:
    """Return the platform that `create_pipeline` builds the pipeline for."""
    module = import_module(f"platforms.{target}.platform")
    platform: Platform = getattr(module, target.capitalize())(config)
    return platform
