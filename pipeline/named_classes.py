"""The settings that name classes, whose names have to exist."""

from __future__ import annotations

from collections.abc import Sequence

from components.evaluator.thresholds import check_names
from pipeline.config import PipelineConfig


def named_classes(config: PipelineConfig, classes: Sequence[str]) -> dict[str, list[str]]:
    """Return setting -> the names of classes in it, for the settings that name classes.

    Args:
      config: the settings.
      classes: the classes; empty if they are found in the files. Then DataGate checks the names.

    Raises:
      ConfigError: the file of `serving_check.golden` cannot be read, or has another form.
      InputError: a setting names a class that does not exist.
    """
    named = {
        "evaluation.min_class_recall": config.evaluation.named_classes,
        "serving_check.golden": config.serving_check.named_classes(classes),
    }
    if classes:
        for setting, names in named.items():
            check_names(setting, names, classes)
    return {setting: names for setting, names in named.items() if names}
