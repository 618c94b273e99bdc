"""The platforms by their names in `--target` and `--engine`; only `make_platform` imports TFX."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import click

import sample_data
from core.errors import ConfigError
from pipeline.config import PipelineConfig
from platforms.checks import Target, check_platform, places
from platforms.flink import checks as flink

if TYPE_CHECKING:
    from pipeline.platform import Platform

_RUNNERS = {"local": "local_runner.py", "vertex": "kubeflow_v2_runner.py"}
"""Engine of the TFX command line -> the file that `--pipeline_path` names."""


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


def check_engine(own: str) -> bool:
    """Check that the TFX command line reads the pipeline for the engine of a runner file.

    TFX replaces `run` only in the runner of its own engine. The runner of another engine would
    start the pipeline.

    Returns:
      Whether this process is the TFX command line.

    Raises:
      ConfigError: `--engine` is another one.
    """
    context = click.get_current_context(silent=True)
    engine = context.params.get("engine") if context else None
    if engine not in (None, own):
        file = _RUNNERS.get(engine)
        remedy = f"set --pipeline_path {file}" if file else f"set --engine {own}"
        raise ConfigError(f"--engine {engine}: {_RUNNERS[own]} is for --engine {own}; {remedy}")
    return engine is not None
