"""The sums that metrics are derived from, computed by NumPy from columns of labels and predictions.

Each class has the parameters of one of TFMA's combiners and the same result. An accumulator has a
bounded size and is added to others of the same class, so it travels between Beam workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np


class Pairs(NamedTuple):
    """Labels and predictions of the same reviews, float64, [reviews]."""

    label: np.ndarray
    prediction: np.ndarray


class Sums(Protocol):
    """The sums of one kind."""

    def of(self, pairs: Pairs) -> Any:
        """Return the accumulator of these reviews."""

    def merge(self, accumulators: Sequence[Any]) -> Any:
        """Return the accumulator of the reviews of all `accumulators`, of which there are some."""


@dataclass(frozen=True)
class Count:
    """The number of reviews, a float."""

    def of(self, pairs: Pairs) -> float:
        return float(len(pairs.label))

    def merge(self, accumulators: Sequence[float]) -> float:
        return sum(accumulators)


@dataclass(frozen=True)
class Totals:
    """The sums of labels and of predictions, and the number of reviews, float64 [3]."""

    def of(self, pairs: Pairs) -> np.ndarray:
        return np.array([pairs.label.sum(), pairs.prediction.sum(), len(pairs.label)], np.float64)

    def merge(self, accumulators: Sequence[np.ndarray]) -> np.ndarray:
        total: np.ndarray = np.sum(accumulators, axis=0)
        return total


class Buckets(NamedTuple):
    """The buckets of a histogram that are not empty.

    Attributes:
      ids: int64 [buckets], ascending.
      sums: sums of weighted labels, of weighted predictions and of weights, float64 [3, buckets].
    """

    ids: np.ndarray
    sums: np.ndarray


@dataclass(frozen=True)
class Histogram:
    """A histogram of the predictions, or of the labels.

    Attributes:
      buckets: number of buckets of equal width; below and above them are two more.
      left: lower end of the first bucket.
      width: distance from `left` to the upper end of the last bucket.
      by_prediction: True for a histogram of the predictions, False for one of the labels.
      fractional: see `_weighted`.
    """

    buckets: int
    left: float
    width: float
    by_prediction: bool
    fractional: bool

    def of(self, pairs: Pairs) -> Buckets:
        label, prediction, weight = _weighted(pairs, self.fractional)
        place = ((prediction if self.by_prediction else label) - self.left) / self.width
        ids = np.clip(place * self.buckets + 1, 0, self.buckets + 1).astype(np.int64)
        return _summed(ids, np.stack([label * weight, prediction * weight, weight]))

    def merge(self, accumulators: Sequence[Buckets]) -> Buckets:
        ids = np.concatenate([found.ids for found in accumulators])
        return _summed(ids, np.concatenate([found.sums for found in accumulators], axis=1))


@dataclass(frozen=True)
class Matrices:
    """True positives, true negatives, false positives, false negatives, float64 [4, thresholds].

    Attributes:
      thresholds: a prediction above it is positive.
      fractional: True: see `_weighted`; False: the thresholds are those of the labels too.
    """

    thresholds: tuple[float, ...]
    fractional: bool

    def of(self, pairs: Pairs) -> np.ndarray:
        label, prediction, weight = _weighted(pairs, self.fractional)
        found = np.empty((4, len(self.thresholds)))
        for column, threshold in enumerate(self.thresholds):
            positive = label == 1 if self.fractional else label > threshold
            above = prediction > threshold
            cases = (positive & above, ~positive & ~above, ~positive & above, positive & ~above)
            found[:, column] = [weight[case].sum() for case in cases]
        return found

    def merge(self, accumulators: Sequence[np.ndarray]) -> np.ndarray:
        total: np.ndarray = np.sum(accumulators, axis=0)
        return total


def _weighted(pairs: Pairs, fractional: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, predictions and weights.

    Args:
      pairs: the reviews.
      fractional: True: a label between 0 and 1 counts as a negative and a positive review, whose
        weights add up to 1.

    Raises:
      ValueError: `fractional` is True, and a label is not in [0, 1].
    """
    label, prediction = pairs
    if not fractional:
        return label, prediction, np.ones(len(label))
    if len(label) and not (label.min() >= 0 and label.max() <= 1):
        raise ValueError(f"labels from {label.min()} to {label.max()} are not within [0, 1]")
    weight = np.concatenate([1 - label, label])
    kept = np.flatnonzero(weight)
    sides = np.repeat([0.0, 1.0], len(label))
    return sides[kept], np.concatenate([prediction, prediction])[kept], weight[kept]


def _summed(ids: np.ndarray, values: np.ndarray) -> Buckets:
    unique, place = np.unique(ids, return_inverse=True)
    sums = [np.bincount(place, row, len(unique)) for row in values]
    return Buckets(unique, np.stack(sums))
