"""The metrics that an Evaluator wrote."""

from __future__ import annotations

import tensorflow_model_analysis as tfma

ACCURACY = "binary_accuracy"
EXAMPLE_COUNT = "example_count"
CANDIDATE = "candidate"
"""The name of the model that is evaluated; that of its baseline is another one."""


def overall_metrics(evaluation: str) -> dict[str, float]:
    """Return metric -> value of the candidate on all Examples.

    Args:
      evaluation: folder of a ModelEvaluation. TFMA does not name a model without a baseline in it.

    Raises:
      ValueError: the evaluation has no overall slice.
    """
    for of_slice in tfma.load_metrics(evaluation):
        if not of_slice.slice_key.single_slice_keys:
            return {
                item.key.name: item.value.double_value.value
                for item in of_slice.metric_keys_and_values
                if item.key.model_name in ("", CANDIDATE) and not item.key.is_diff
            }
    raise ValueError(f"{evaluation}: no overall slice in the evaluation")
