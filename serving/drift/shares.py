"""Tests of shares, and of the scores of a model, between a reference and new reviews."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2_contingency, ks_2samp

from preprocessing.labels import Labels

_LEAST_EXPECTED = 5
"""Minimum expected number of reviews of a class in the chi-squared test (Cochran 1954)."""
_CONFIDENCE = 0.95
_DECIMALS = 5
"""Decimals of a probability that are compared. Batches of another size change its last bits."""


class Distance(NamedTuple):
    """The largest distance between two distributions of a score.

    Attributes:
      value: the Kolmogorov-Smirnov statistic, from 0 to 1.
      interval: its 95 % confidence interval.
      p_value: the probability of at least this distance if nothing has changed.
      label: the class of the score.
    """

    value: float
    interval: tuple[float, float]
    p_value: float
    label: int


def score_distance(reference: np.ndarray, new: np.ndarray, classes: Labels) -> Distance:
    """Return the distance between the scores of the class that has changed most.

    The outputs of a classifier are a sensitive summary of its inputs, "black box shift detection"
    (Lipton et al. 2018). Each class has a Kolmogorov-Smirnov test, and Bonferroni's correction
    joins them (Rabanser et al. 2019, "Failing Loudly"). The interval follows from the
    Dvoretzky-Kiefer-Wolfowitz inequality with Massart's constant (1990), which holds for any
    distribution and is wide.

    Args:
      reference: the scores of the reference, see `Labels.decide`.
      new: those of the new reviews.
      classes: the classes.
    """
    old_columns, new_columns = (
        np.round(each.reshape(len(each), -1), _DECIMALS).T for each in (reference, new)
    )
    found = [
        ks_2samp(old, column, method="asymp")
        for old, column in zip(old_columns, new_columns, strict=True)
    ]
    most = min(range(len(found)), key=lambda label: (found[label].pvalue, -found[label].statistic))
    value = float(found[most].statistic)
    # Each of the two distributions may leave its band with half of the probability.
    outside = (1 - _CONFIDENCE) / 2
    width = sum(
        math.sqrt(math.log(2 / outside) / (2 * size)) for size in (len(reference), len(new))
    )
    interval = max(0.0, value - width), min(1.0, value + width)
    p_value = min(1.0, float(found[most].pvalue) * len(found))
    return Distance(value, interval, p_value, 1 if classes.is_binary else most)


def share_p_value(old: tuple[int, int], new: tuple[int, int]) -> float:
    """Return the p-value of Pearson's chi-squared test that two shares are equal.

    Args:
      old: the number of reviews with a property, and of all reviews, of the reference.
      new: the same of the new reviews.
    """
    return label_p_value(*(np.array([part, whole - part]) for part, whole in (old, new)))


def drop_p_value(old: tuple[int, int], new: tuple[int, int]) -> float:
    """Return the p-value of the one-sided test of whether a share has dropped.

    Args:
      old: see `share_p_value`.
      new: see `share_p_value`.
    """
    both = share_p_value(old, new)
    is_lower = new[0] * old[1] < old[0] * new[1]
    return both / 2 if is_lower else 1 - both / 2


def label_p_value(old: np.ndarray, new: np.ndarray) -> float:
    """Return the p-value of Pearson's chi-squared test that all classes have equal shares.

    Neighbouring classes that are too rare for the test count as one class, see `_groups`.

    Args:
      old: the number of reviews of each class, of the reference, int64 [classes].
      new: the same of the new reviews.

    Returns:
      1 if there are fewer than two classes.
    """
    table = np.array([old, new])
    expected = table.sum(axis=0) * min(old.sum(), new.sum()) / table.sum()
    groups = _groups(expected)
    joined = np.array([np.bincount(groups, weights=counts) for counts in table])
    joined = joined[:, joined.sum(axis=0) > 0]
    if joined.shape[1] < 2:
        return 1.0
    return float(chi2_contingency(joined).pvalue)


def _groups(expected: np.ndarray) -> np.ndarray:
    """Return the group of each class, int64 [classes].

    A class that is frequent enough for the test is a group of its own. Rare ones form groups that
    are just frequent enough: if all of many classes are rare and formed one group, the test would
    find no change of their shares.

    Args:
      expected: the expected number of reviews of each class in the smaller sample. The groups
        depend on nothing else, so they do not change the distribution of the statistic.
    """
    is_rare = expected < _LEAST_EXPECTED
    groups = np.zeros(len(expected), np.int64)
    last, size = 0, 0.0
    for label in np.flatnonzero(is_rare).tolist():
        if size >= _LEAST_EXPECTED:
            last, size = last + 1, 0.0
        groups[label] = last
        size += expected[label]
    if last and size < _LEAST_EXPECTED:
        # The rest joins the group before it.
        last -= 1
        groups = np.minimum(groups, last)
    groups[~is_rare] = last + 1 + np.arange(np.count_nonzero(~is_rare))
    return groups


def alarms(p_values: Mapping[str, float], level: float) -> frozenset[str]:
    """Return the names of the tests that are significant together, by the method of Holm (1979).

    If nothing has changed, the probability of any name is at most `level`, whatever the dependence
    of the tests.

    Args:
      p_values: name of a test -> its p-value.
      level: the total probability of a false alarm.
    """
    found = set()
    ordered = sorted(p_values, key=lambda name: p_values[name])
    for number, name in enumerate(ordered):
        if p_values[name] > level / (len(ordered) - number):
            break
        found.add(name)
    return frozenset(found)
