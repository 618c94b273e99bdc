"""Propose the settings of a training for an input with few texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.overrides import dump_yaml
from pipeline.config import PipelineConfig, load_config
from pipeline.data_check.found import Problem
from pipeline.data_check.settings_file import changed_values
from preprocessing.reading.records import STARS_TASK, TaskName

_FEW = 20_000
"""The most train texts for which the settings are proposed. With more texts they were not
measured, and a training with them takes long."""
# Logistic regression on parts of words, in small steps: on the sets in the laboratory journal it
# has the accuracy and the log loss of scikit-learn's regression.
_TWO_CLASSES: Mapping[str, Any] = {
    "transform": {"character_ngrams": [2, 3, 4, 5]},
    "training": {
        "model": "ngram_linear",
        "epochs": 5,
        "min_examples_seen": 25_000,
        "batch_size_per_replica": 64,
        "learning_rate": 0.03,
    },
}


def few_texts(
    config: PipelineConfig, task: TaskName, classes: int, train_texts: int
) -> tuple[Problem, Mapping[str, Any]] | None:
    """Return the note about few texts; None if there are many, or if the settings have a training.

    Args:
      config: the settings.
      task: the task of the labels.
      classes: the number of classes.
      train_texts: the number of Examples in the train split.

    Returns:
      The note, and name of a section of the settings -> its keys with the proposed values.
    """
    if not 0 < train_texts <= _FEW or not _has_default_training(config):
        return None
    if classes == 2:
        sections = _TWO_CLASSES
    elif task == STARS_TASK:
        # The thresholds of the preset allow for stars that resemble their neighbours.
        sections = _of_preset("stars", "transform", "training", "evaluation")
    else:
        sections = _of_preset("topics", "transform", "training")
    training = config.training
    steps = -(-train_texts // training.batch_size_per_replica) * training.epochs
    message = (
        f"the train split has {train_texts:,} texts, with which the default training ends after "
        f"{steps:,} steps: set more and smaller steps, and n-grams of characters, with which a "
        "model of few texts is more accurate"
    )
    return Problem(message, dump_yaml(dict(sections)), is_blocking=False), sections


def _has_default_training(config: PipelineConfig) -> bool:
    """Return whether features and training are those of a user who has set none of them."""
    return any(
        (config.transform, config.training) == (default.transform, default.training)
        for default in (PipelineConfig(), load_config("sample", environ={}))
    )


def _of_preset(preset: str, *names: str) -> Mapping[str, Any]:
    """Return sections of a preset, with the values that differ from the defaults."""
    values = changed_values(load_config(preset, environ={}), PipelineConfig())
    return {name: values[name] for name in names}
