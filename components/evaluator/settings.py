"""The section `evaluation` of the settings; imports no TFX."""

from __future__ import annotations

from typing import Literal

from core.settings import Fraction, Section


class Evaluation(Section):
    """The thresholds of a model for a push, and the slices of the evaluation."""

    min_accuracy: Fraction = 0.8
    max_accuracy_drop: Fraction = 0.01
    """The largest drop of the accuracy below that of the latest blessed model."""
    baseline_model: str | None = None
    """For Kubeflow: the SavedModel to compare with; None: the last pushed model."""
    slices: list[Literal["length_bucket"]] = ["length_bucket"]
