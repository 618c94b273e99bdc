"""Checks of the settings against what each platform supports; this module imports no TFX."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from operator import attrgetter
from typing import Literal
from urllib.parse import urlsplit

import click

import sample_data
from core.errors import ConfigError
from core.storage import is_url
from pipeline.cluster_settings import LOCAL
from pipeline.config import PipelineConfig
from pipeline.destinations import DESTINATIONS, destination_paths
from pipeline.nodes import TRAINER
from platforms.flink import checks as flink
from platforms.kubeflow import checks as kubeflow
from platforms.pipeline_spec import REPLACED
from platforms.vertex import checks as vertex
from preprocessing.reading.globs import is_data_folder
from preprocessing.reading.span_pattern import parse_pattern

Target = Literal["local", "vertex", "kubeflow"]
"""The platforms, by their names in `--target`."""

_IMAGE = {"cluster.image": "HOST/PROJECT/amazon-reviews:TAG"}
_REQUIRED = {
    "local": {},
    "kubeflow": _IMAGE,
    "vertex": {
        **_IMAGE,
        "vertex.project": "the Google Cloud project of runs",
        "vertex.region": "the Google Cloud region of runs",
        "data.input_base": "gs://BUCKET/FOLDER with the input files",
    },
}
"""Target -> setting that it requires -> the value to set."""


def check_target(config: PipelineConfig, target: Target) -> None:
    """Check the settings against what a platform supports.

    Raises:
      ConfigError: a setting is missing, or the platform does not support it. The message names the
        key of the setting.
    """
    for problem in _problems(config, target):
        raise ConfigError(problem)
    if target == "local":
        sample = {"data.input_base": os.path.dirname(sample_data.__file__)}
        flink.check_paths(config, {**sample, **used_paths(config)}.items())
        flink.check_local(config)
    else:
        flink.check_compiled(config, used_paths(config).items())


def check_engine(own: str) -> bool:
    """Return whether this process is the TFX command line.

    The TFX command line replaces the method `run` of the runner of its engine, in order to read the
    pipeline. The runner of another engine would start the pipeline.

    Args:
      own: the engine of the runner that calls this function.

    Raises:
      ConfigError: the command line names another engine.
    """
    context = click.get_current_context(silent=True)
    engine = context.params.get("engine") if context else None
    if engine not in (None, own):
        raise ConfigError(f"--engine {engine}: this file is for --engine {own}")
    return engine is not None


def used_paths(config: PipelineConfig) -> dict[str, str]:
    """Return setting -> path, for each path that the steps read or write.

    The paths of the destination are included without a push too: the baseline and
    `training.warm_start` read the served model there.
    """
    paths = {
        "paths.root": config.paths.root,
        "paths.checkpoints": config.paths.checkpoints,
        "data.input_base": config.data.input_base,
        **destination_paths(config),
    }
    return {key: path for key, path in paths.items() if path}


def _problems(config: PipelineConfig, target: Target) -> Iterator[str]:
    data, push = config.data, config.push.destination
    if data.splits and not data.input_base:
        yield (
            "data.input_base: not set, and data.splits requires it; set the folder that contains "
            "the files"
        )
    yield from _inside_input(config)
    destination = DESTINATIONS[push]
    if target not in destination.targets:
        on = " or ".join(destination.targets)
        yield f"push.destination: {push} requires --target {on}; set filesystem, or none"
    for key, right in {**_REQUIRED[target], **destination.required}.items():
        if not attrgetter(key)(config):
            yield f"{key}: not set, and {target} requires it; set {right}"
    if target != "local":
        yield from _training(config)
        yield from _loopback(config)
        yield from _replaced(config)
    if target == "kubeflow":
        yield from kubeflow.problems(config, used_paths(config), _gpu_types(config))
    if target == "vertex":
        yield from vertex.problems(config, used_paths(config), _gpu_types(config))


def _inside_input(config: PipelineConfig) -> Iterator[str]:
    """Yield the problem of each folder whose files the next run would read as input."""
    base = (config.data.input_base or "").rstrip("/")
    # With `data.splits` only the files that match its globs are read.
    if not base or config.data.splits:
        return
    pattern = parse_pattern(base)
    for key in ("root", "metadata", "serving", "checkpoints"):
        path = getattr(config.paths, key)
        inside = pattern.inside(path) if pattern else path.removeprefix(base + "/")
        if inside != path and is_data_folder(inside):
            yield (
                f"paths.{key}: {path} is inside data.input_base ({base}), and every file there is "
                "read as input; set a folder outside of it, or name the input files in "
                "data.splits"
            )


def _training(config: PipelineConfig) -> Iterator[str]:
    """Yield the problem of a training that does not fit the GPUs of each training process."""
    training = config.training
    trainer = config.cluster.resources.get(TRAINER)
    gpus = trainer.gpus if trainer else 0
    reason = f"cluster.resources.Trainer.gpus is {gpus}"
    try:
        training.check_gpus(gpus)
        if training.strategy == "auto":
            training.check_strategy(training.resolve_auto(gpus)[0], f"auto: {reason}")
    except ValueError as error:
        yield str(error) if reason in str(error) else f"{error} ({reason})"


def _loopback(config: PipelineConfig) -> Iterator[str]:
    """Yield the problem of each address at which a container would reach only itself."""
    flink = config.beam.flink
    addresses = {"tracking.mlflow": config.tracking.mlflow}
    if config.beam.runner == "flink":
        addresses["beam.flink.job_endpoint"] = flink.job_endpoint
        addresses["beam.flink.master"] = None if flink.master == LOCAL else flink.master
    for key, address in addresses.items():
        if address and _is_loopback(address):
            yield (
                f"{key}: {address} is not reachable from a container; set an address that the "
                "containers of the steps can reach"
            )


def _is_loopback(address: str) -> bool:
    """Return whether an address is that of the machine or container that uses it.

    0.0.0.0 is one too: a server listens on it, and a client that connects to it reaches itself.

    Args:
      address: a URL, or `HOST:PORT`.
    """
    host = urlsplit(address if is_url(address) else f"//{address}").hostname or ""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:  # The host is a name.
        return host.rstrip(".") == "localhost"
    return found.is_loopback or found.is_unspecified


def _replaced(config: PipelineConfig) -> Iterator[str]:
    """Yield the problem of each path and argument that a cluster would change.

    Other settings reach the steps as JSON, in which such characters are escaped.
    """
    arguments = [("beam.args", argument) for argument in config.beam.args]
    for key, text in (*used_paths(config).items(), *arguments):
        if REPLACED.search(text):
            yield (
                f"{key}: {text} contains $$, $( or {{{{, which a cluster replaces; set one without "
                "them"
            )


def _gpu_types(config: PipelineConfig) -> dict[str, str]:
    """Return setting -> type of GPU, for each component whose settings name one."""
    return {
        f"cluster.resources.{name}.gpu_type": resources.gpu_type
        for name, resources in config.cluster.resources.items()
        if resources.gpu_type
    }
