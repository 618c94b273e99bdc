"""The section `evaluation` of the settings; imports no TFX."""

from __future__ import annotations

from typing import Literal

from core.settings import Fraction, Section


class Evaluation(Section):
    """The evaluation, and the thresholds that a model has to pass to be blessed."""

    min_accuracy: Fraction = 0.8
    """Least accuracy on the test split."""
    max_accuracy_drop: Fraction = 0.01
    """Greatest drop of the accuracy below that of the model in production."""
    baseline_model: str | None = None
    """Kubeflow only: SavedModel of the baseline; None: the served model."""
    slices: list[Literal["length_bucket"]] = ["length_bucket"]
    """Features by which the metrics are also broken down."""
    batched: bool = True
    """Compute the metrics in large batches; `false`: by TFX's own executor, which takes longer."""
