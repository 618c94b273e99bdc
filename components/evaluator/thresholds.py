"""The section `evaluation` of the settings; imports no TFX."""

from __future__ import annotations

from typing import Literal

from core.settings import Fraction, Section


class Evaluation(Section):
    """The evaluation, and the thresholds that a model has to pass to be blessed."""

    min_accuracy: Fraction = 0.8
    """Minimum accuracy on the test split; 0: none."""
    min_class_recall: Fraction = 0.4
    """Minimum fraction of the negative and of the positive reviews of the test split that the model
    finds; 0: none. A model that knows one class finds no review of the other one."""
    max_accuracy_drop: Fraction = 0.01
    """Maximum drop of the accuracy below that of the model in production; 1: none."""
    slices: list[Literal["length_bucket"]] = ["length_bucket"]
    """Features for whose values the metrics are computed separately too."""
