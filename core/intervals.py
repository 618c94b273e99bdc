"""Confidence intervals of fractions."""

from __future__ import annotations


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Return the lower and the upper end of Wilson's 95 % confidence interval of a fraction.

    Args:
      part: the number of items with a property, such as right answers.
      whole: the number of all items, at least 1.
    """
    # The import takes a second, and `core` belongs to every command.
    from scipy.stats import binomtest

    interval = binomtest(part, whole).proportion_ci(0.95, "wilson")
    return float(interval.low), float(interval.high)
