"""The result of a step: sums over its Examples, and the means that are computed from them.

The means are over real Examples. The Examples that pad a batch to its static shape have weight 0,
and are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

NAMES = ("loss", "accuracy")
"""The names of the metrics."""

Step = Callable[[Any], dict[str, tf.Tensor]]
"""The computation of a replica in one step: batch -> name of a metric -> [sum over the Examples,
number of Examples], float32 [2]."""


def step_means(sums: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Return name of a metric -> mean over a batch, float32 []; 0 without Examples.

    Args:
      sums: the result of a `Step`.
    """
    return {name: sums[name][0] / tf.maximum(sums[name][1], 1.0) for name in NAMES}


def means(totals: Mapping[str, Any]) -> dict[str, float]:
    """Return name of a metric -> mean over many steps; 0 without Examples.

    Args:
      totals: name of a metric -> the sum of the results of the steps, [2].
    """
    return {name: float(total / max(count, 1.0)) for name, (total, count) in totals.items()}
