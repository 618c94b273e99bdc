"""Checks of the settings that several platforms share; this module imports no TFX."""

from __future__ import annotations

import re
from typing import Literal

from core.errors import ConfigError
from pipeline.config import PipelineConfig
from preprocessing.reading.globs import is_data
from trainer_module import combinations

Target = Literal["local", "vertex", "kubeflow"]
"""The platforms, by their names in `--target`."""
ClusterTarget = Literal["vertex", "kubeflow"]
"""The platforms that run a compiled pipeline."""


def check_splits(config: PipelineConfig) -> None:
    """Raise ConfigError if `data.splits` has globs but `data.input_base` is not set."""
    if config.data.splits and not config.data.input_base:
        raise missing("data.input_base", "data.splits", "the folder that contains the files")


def check_outside_input(config: PipelineConfig) -> None:
    """Raise ConfigError if what a run writes would be read as reviews by the next run."""
    base = (config.data.input_base or "").rstrip("/")
    # With `data.splits` only the files that match its globs are read.
    if not base or config.data.splits:
        return
    for key in ("root", "metadata", "serving", "checkpoints"):
        place = getattr(config.paths, key)
        inside = place.removeprefix(base + "/")
        if inside != place and is_data(inside):
            raise ConfigError(
                f"paths.{key}: {place} is inside data.input_base ({base}), all files of which are "
                "read as reviews; set a folder outside of it, or name the review files in "
                "data.splits"
            )


def cluster_name(config: PipelineConfig) -> str:
    """Return the pipeline's name with dashes, for a cluster that allows no underscores."""
    return config.name.replace("_", "-")


def check_compiled(config: PipelineConfig, target: str) -> None:
    """Check the settings that both clusters require.

    Raises:
      ConfigError: `cluster.image` is missing, a path is inside `data.input_base`, `name` has
        characters that are not allowed, or the training does not fit the GPUs of each process.
    """
    check_splits(config)
    check_outside_input(config)
    if not config.cluster.image:
        raise missing("cluster.image", target, "HOST/PROJECT/amazon-reviews:TAG")
    if not re.fullmatch("[a-z0-9][a-z0-9-]{0,127}", cluster_name(config)):
        raise ConfigError(
            f"name: {config.name} is not allowed on {target}; use at most 128 characters of a-z, "
            "0-9 and -"
        )
    _check_training(config)


def places(config: PipelineConfig) -> dict[str, str]:
    """Return setting -> path of everything that the steps read and write."""
    paths = {
        "paths.root": config.paths.root,
        "paths.checkpoints": config.paths.checkpoints,
        "data.input_base": config.data.input_base,
        "paths.serving": config.paths.serving if config.push.destination == "filesystem" else None,
        "evaluation.baseline_model": config.evaluation.baseline_model,
    }
    return {key: path for key, path in paths.items() if path}


def check_baseline(config: PipelineConfig, target: str) -> None:
    """Raise ConfigError if `evaluation.baseline_model` is set."""
    if config.evaluation.baseline_model:
        raise ConfigError(
            f"evaluation.baseline_model: requires --target kubeflow; on {target} the baseline is "
            "the served model; remove the setting"
        )


def check_dataflow(config: PipelineConfig) -> None:
    """Raise ConfigError if `beam.runner: dataflow` lacks a setting or a bucket."""
    if config.beam.runner != "dataflow":
        return
    for key in ("project", "region"):
        if not getattr(config.vertex, key):
            raise missing(
                f"vertex.{key}", "beam.runner: dataflow", f"the {key} of the Dataflow jobs"
            )
    for key, path in {**places(config), "data.input_base": config.data.input_base}.items():
        if not (path or "").startswith("gs://"):
            raise ConfigError(
                f"{key}: {path} is not accessible from Dataflow's workers; set gs://BUCKET/FOLDER"
            )


def missing(key: str, target: str, right: str) -> ConfigError:
    """Return the error of a key that `target` requires; `right` describes a correct value."""
    return ConfigError(f"{key}: not set, and {target} requires it; set {right}")


def _check_training(config: PipelineConfig) -> None:
    """Raise ConfigError if the training does not fit the GPUs of each training process."""
    training = config.training
    trainer = config.cluster.resources.get("Trainer")
    gpus = trainer.gpus if trainer else 0
    of_gpus = f"cluster.resources.Trainer.gpus is {gpus}"
    found = combinations.too_few_gpus(training, gpus)
    if found is None and training.strategy == "auto":
        name = combinations.of_one_process(training, gpus)
        found = combinations.problem(training, name, f"auto: {of_gpus}")
    if found:
        raise ConfigError(found if of_gpus in found else f"{found} ({of_gpus})")
