"""The section `evaluation` of the settings; imports no TFX."""

from __future__ import annotations

from typing import Literal

from core.settings import Fraction, Section


class Evaluation(Section):
    """What a model must reach to be pushed."""

    min_accuracy: Fraction = 0.8
    max_accuracy_drop: Fraction = 0.01
    """How far below the latest blessed model accuracy may fall."""
    baseline_model: str | None = None
    """Kubeflow: the SavedModel to compare with; None: the last pushed one."""
    slices: list[Literal["length_bucket"]] = ["length_bucket"]
