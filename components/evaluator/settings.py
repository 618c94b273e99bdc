"""The section `evaluation` of the settings; imports no TFX."""

from __future__ import annotations

from typing import Literal

from core.settings import Fraction, Section


class Evaluation(Section):
    """The evaluation, and the thresholds that a model has to pass to be blessed."""

    removed = {
        "baseline_model": "the baseline is the model that paths.serving serves",
        "batched": "the metrics are always computed in batches; remove it",
    }

    min_accuracy: Fraction = 0.8
    """Least accuracy on the test split."""
    max_accuracy_drop: Fraction = 0.01
    """Greatest drop of the accuracy below that of the model in production."""
    slices: list[Literal["length_bucket"]] = ["length_bucket"]
    """Features by which the metrics are also broken down."""
