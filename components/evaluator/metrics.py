"""The metrics that an Evaluator wrote."""

from __future__ import annotations

from typing import Any

import tensorflow_model_analysis as tfma

from core.files import without_magic

ACCURACY = "binary_accuracy"
ACCURACY_CLASS = "BinaryAccuracy"
"""The class of the metric ACCURACY in the configuration of TFMA."""
EXAMPLE_COUNT = "example_count"
CANDIDATE, BASELINE = "candidate", "baseline"
"""The names of the evaluated model and of the model that it is compared with."""


def overall_metrics(evaluation: str, model: str = CANDIDATE) -> dict[str, float]:
    """Return metric -> value on all Examples.

    Args:
      evaluation: folder of a ModelEvaluation.
      model: CANDIDATE or BASELINE.

    Raises:
      ValueError: the evaluation has no overall slice.
    """
    for of_slice in tfma.load_metrics(without_magic(evaluation)):
        if not of_slice.slice_key.single_slice_keys:
            return metrics_by_model(of_slice).get(model, {})
    raise ValueError(f"{evaluation}: no overall slice in the evaluation")


def metrics_by_model(of_slice: Any) -> dict[str, dict[str, float]]:
    """Return CANDIDATE or BASELINE -> metric -> value.

    Args:
      of_slice: a `MetricsForSlice` of TFMA, which names no model if there is no baseline.
    """
    found: dict[str, dict[str, float]] = {}
    for item in of_slice.metric_keys_and_values:
        if item.value.HasField("double_value") and not item.key.is_diff:
            model = item.key.model_name or CANDIDATE
            found.setdefault(model, {})[item.key.name] = item.value.double_value.value
    return found
