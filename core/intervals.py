"""Confidence intervals of fractions."""

from __future__ import annotations


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Return the ends of Wilson's 95 % confidence interval of a fraction.

    Args:
      part: the number of reviews with a property.
      whole: the number of all reviews, at least 1.
    """
    # The import takes a second, and `core` belongs to every command.
    from scipy.stats import binomtest

    interval = binomtest(part, whole).proportion_ci(0.95, "wilson")
    return float(interval.low), float(interval.high)
