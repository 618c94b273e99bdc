"""An estimate of the accuracy on reviews without labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from preprocessing.labels import Labels

_RESAMPLES = 1_000
_SMALLEST = 1e-7
_TEMPERATURES = (0.05, 20.0)
"""The least and the greatest temperature."""


class Estimate(NamedTuple):
    """An estimated accuracy.

    Attributes:
      value: the estimate.
      interval: its 95 % confidence interval.
    """

    value: float
    interval: tuple[float, float]


def estimate_accuracy(
    scores: np.ndarray, labels: np.ndarray, new: np.ndarray, classes: Labels, seed: int = 0
) -> Estimate:
    """Return the estimated accuracy on new reviews: average thresholded confidence.

    In the reference, the threshold separates as many reviews as the model gets wrong from the
    others. The estimate is the share of the new reviews above it (Garg et al. 2022, "Leveraging
    unlabeled data to predict out-of-distribution performance"). The confidence is the greatest
    probability after temperature scaling (Guo et al. 2017). The interval is Efron's percentile
    bootstrap over both samples. It contains no error that follows from the shift itself, such as
    that of texts which the model misunderstands with confidence.

    Args:
      scores: the scores of the reference, see `Labels.decide`.
      labels: its labels.
      new: the scores of the new reviews.
      classes: the classes.
      seed: determines the resamples.
    """
    is_wrong = classes.decide(scores) != labels
    temperature = _temperature(scores, labels, classes)
    known = _confidence(scores, temperature, classes)
    found = np.sort(_confidence(new, temperature, classes))
    order = np.argsort(known, kind="stable")
    known, is_wrong = known[order], is_wrong[order]

    def share_above(weights: np.ndarray) -> float:
        errors = int(weights[is_wrong].sum())
        at = int(np.searchsorted(np.cumsum(weights), errors, "right")) if errors else 0
        threshold = known[min(at, len(known) - 1)] if errors else -np.inf
        return 1 - float(np.searchsorted(found, threshold)) / len(found)

    random = np.random.default_rng(seed)
    value = share_above(np.ones(len(known), np.int64))
    resampled = np.empty(_RESAMPLES)
    for number in range(_RESAMPLES):
        drawn = np.bincount(random.integers(len(known), size=len(known)), minlength=len(known))
        # The number above a threshold in a resample of the new reviews is binomial.
        resampled[number] = random.binomial(len(found), share_above(drawn)) / len(found)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Estimate(value, (float(low), float(high)))


def _temperature(scores: np.ndarray, labels: np.ndarray, classes: Labels) -> float:
    """Return the temperature with the least cross-entropy on the reference."""
    logits = _logits(scores, classes)
    rows = np.arange(len(labels))

    def loss(logarithm: float) -> float:
        scaled = logits / np.exp(logarithm)
        peak = scaled.max(axis=1)
        total = peak + np.log(np.exp(scaled - peak[:, None]).sum(axis=1))
        return float((total - scaled[rows, labels]).mean())

    bounds = tuple(np.log(_TEMPERATURES).tolist())
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def _confidence(scores: np.ndarray, temperature: float, classes: Labels) -> np.ndarray:
    """Return the greatest probability of each review at a temperature, float64 [reviews]."""
    scaled = _logits(scores, classes) / temperature
    scaled -= scaled.max(axis=1, keepdims=True)
    found: np.ndarray = 1 / np.exp(scaled).sum(axis=1)
    return found


def _logits(scores: np.ndarray, classes: Labels) -> np.ndarray:
    return np.log(np.maximum(classes.by_class(scores.astype(np.float64)), _SMALLEST))
