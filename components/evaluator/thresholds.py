"""The section `evaluation` of the settings: thresholds and slices. It imports no TFX."""

from __future__ import annotations

from typing import Literal

from core.settings import Fraction, Section


class Evaluation(Section):
    """The evaluation, and the thresholds that a model has to reach to be blessed."""

    min_accuracy: Fraction = 0.8
    """Minimum accuracy on the test split; 0: none."""
    min_class_recall: Fraction = 0.4
    """Minimum recall of the negative and of the positive reviews of the test split; 0: none. A
    model that always answers one class has the recall 0 for the other class."""
    max_accuracy_drop: Fraction = 0.01
    """Maximum drop of the accuracy below that of the model in production; 1: none."""
    slices: list[Literal["length_bucket"]] = ["length_bucket"]
    """Features. The metrics are also computed for the reviews with each of their values."""
