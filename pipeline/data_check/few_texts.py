"""Propose the settings of a training for an input with few texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from core.overrides import dump_yaml
from pipeline.config import PipelineConfig, load_config
from pipeline.data_check.found import Problem
from pipeline.data_check.settings_file import changed_values
from preprocessing.reading.records import STARS_TASK, TaskName

_Sections = Mapping[str, Mapping[str, Any]]
"""Name of a section of the settings -> its keys with their values."""
_FEW = 20_000
"""The most train texts for which the settings are proposed. With more texts they were not
measured, and a training with them takes long."""
# Logistic regression on parts of words, in small steps: on the sets in the laboratory journal it
# has the accuracy and the log loss of scikit-learn's regression.
_TWO_CLASSES: _Sections = {
    "transform": {"character_ngrams": [2, 3, 4, 5]},
    "training": {
        "model": "ngram_linear",
        "epochs": 5,
        "min_examples_seen": 25_000,
        "batch_size_per_replica": 64,
        "learning_rate": 0.03,
    },
}


class FewTexts(NamedTuple):
    """The proposal for few texts.

    Attributes:
      note: the note with the settings.
      sections: name of a section of the settings -> its keys with the proposed values.
    """

    note: Problem
    sections: _Sections


def few_texts(
    config: PipelineConfig, task: TaskName, classes: int, train_texts: int
) -> FewTexts | None:
    """Return the proposal; None for many texts, and for settings with a training of their own.

    Args:
      config: the settings.
      task: the task of the labels.
      classes: the number of classes.
      train_texts: the number of Examples in the train split.
    """
    if not 0 < train_texts <= _FEW:
        return None
    # The defaults of a settings file, and those of a command without one.
    defaults = PipelineConfig(), load_config("sample", environ={})
    if not _has_default_training(config, defaults):
        return None
    if classes == 2:
        sections = _TWO_CLASSES
    elif task == STARS_TASK:
        # The thresholds of the preset allow for stars that resemble their neighbours.
        preset = _of_preset("stars", "transform", "training", "evaluation")
        thresholds = _unset_thresholds(config, preset["evaluation"], defaults)
        sections = {**preset, "evaluation": thresholds}
    else:
        sections = _of_preset("topics", "transform", "training")
    sections = {name: values for name, values in sections.items() if values}
    training = config.training
    steps = math.ceil(train_texts / training.batch_size_per_replica) * training.epochs
    message = (
        f"the train split has {train_texts:,} texts, so the default training ends after {steps:,} "
        "steps: with more and smaller steps, and with n-grams of characters, a model of few texts "
        "is more accurate"
    )
    note = Problem(message, dump_yaml(dict(sections)), is_blocking=False)
    return FewTexts(note, sections)


def _has_default_training(config: PipelineConfig, defaults: Sequence[PipelineConfig]) -> bool:
    """Return whether features and training are those of a user who has set none of them."""
    return any(
        (config.transform, config.training) == (default.transform, default.training)
        for default in defaults
    )


def _unset_thresholds(
    config: PipelineConfig, proposed: Mapping[str, Any], defaults: Sequence[PipelineConfig]
) -> Mapping[str, Any]:
    """Return the proposed keys of `evaluation` that the user has not set."""
    return {
        key: value
        for key, value in proposed.items()
        if any(
            getattr(config.evaluation, key) == getattr(default.evaluation, key)
            for default in defaults
        )
    }


def _of_preset(preset: str, *names: str) -> _Sections:
    """Return sections of a preset, with the values that differ from the defaults."""
    values = changed_values(load_config(preset, environ={}), PipelineConfig())
    return {name: values[name] for name in names}
