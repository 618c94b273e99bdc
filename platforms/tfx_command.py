"""The TFX command line, which executes a runner file in its own process to read the pipeline."""

from __future__ import annotations

import click

from core.errors import ConfigError

_RUNNERS = {"local": "local_runner.py", "vertex": "kubeflow_v2_runner.py"}
"""Engine -> the file that `--pipeline_path` names."""


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
