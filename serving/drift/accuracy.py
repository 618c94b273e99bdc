"""An estimate of the accuracy on reviews without labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from preprocessing.labels import Labels

_RESAMPLES = 200
_LEAST_ANSWERS = 200
"""Minimum number of answers of a class in the reference that have a calibration of their own."""


class Estimate(NamedTuple):
    """An estimated accuracy.

    Attributes:
      value: the estimate.
      interval: its 95 % confidence interval.
    """

    value: float
    interval: tuple[float, float]


def estimate_accuracy(
    scores: np.ndarray, labels: np.ndarray, new: np.ndarray, classes: Labels
) -> Estimate:
    """Return the estimated accuracy on new reviews: their average calibrated confidence.

    The confidence is the greatest probability. Isotonic regression on the reference (Zadrozny and
    Elkan 2002), of each answer for itself, converts it to the probability that the answer is right.
    Garg et al. (2022, "Leveraging unlabeled data to predict out-of-distribution performance")
    compare such estimates; the results in the documentation compare this one with theirs, average
    thresholded confidence. The interval is Efron's percentile bootstrap over both samples. It
    contains no error that follows from the shift itself, such as that of texts which the model
    misunderstands with confidence.

    Args:
      scores: the scores of the reference, see `Labels.decide`.
      labels: its labels.
      new: the scores of the new reviews.
      classes: the classes.
    """
    random = np.random.default_rng(0)
    total, resampled = 0.0, np.zeros(_RESAMPLES)
    answers, new_answers = classes.decide(scores), classes.decide(new)
    is_right, known = answers == labels, _confidence(scores, classes)
    confidence = _confidence(new, classes)
    for group in _groups(answers, classes):
        here = np.flatnonzero(group[answers])
        here = here[np.argsort(known[here], kind="stable")]
        found = confidence[group[new_answers]]
        if not len(found):
            continue
        total += _calibrated(known[here], is_right[here], found, classes.number).sum()
        for number in range(_RESAMPLES):
            # Sorted indices of a sorted array are a sorted resample.
            drawn = here[np.sort(random.integers(len(here), size=len(here)))]
            drawn_new = found[random.integers(len(found), size=len(found))]
            shares = _calibrated(known[drawn], is_right[drawn], drawn_new, classes.number)
            resampled[number] += shares.sum()
    low, high = np.percentile(resampled / len(new), [2.5, 97.5])
    return Estimate(float(total / len(new)), (float(low), float(high)))


def _groups(answers: np.ndarray, classes: Labels) -> Iterator[np.ndarray]:
    """Yield the classes whose answers are calibrated together, bool [classes].

    Args:
      answers: the answers of the reference.
      classes: the classes.
    """
    counts = np.bincount(answers, minlength=classes.number)
    is_rare = counts < _LEAST_ANSWERS
    if counts[is_rare].sum() < _LEAST_ANSWERS:
        # The rare classes are too few together, so all classes share one calibration.
        if is_rare.any():
            yield np.ones(classes.number, bool)
            return
    else:
        yield is_rare
    for label in np.flatnonzero(~is_rare):
        yield np.arange(classes.number) == label


def _calibrated(
    known: np.ndarray, is_right: np.ndarray, found: np.ndarray, classes: int
) -> np.ndarray:
    """Return the probability that an answer is right for each confidence in `found`.

    Below the confidences of the reference it falls to that of an answer by chance. Otherwise a
    model without errors in the reference would be estimated to make none, however unsure it is.

    Args:
      known: confidences of the reference, ascending.
      is_right: whether their answers are right.
      found: confidences.
      classes: the number of classes.
    """
    # Equal confidences have one probability.
    values, starts, counts = np.unique(known, return_index=True, return_counts=True)
    shares = np.add.reduceat(is_right.astype(np.float64), starts) / counts
    right = isotonic_regression(shares, weights=counts).x
    chance = 1 / classes
    values, right = np.append(chance, values), np.append(min(chance, right[0]), right)
    return np.interp(found, values, right)


def _confidence(scores: np.ndarray, classes: Labels) -> np.ndarray:
    """Return the probability of the answer to each review, float64 [reviews]."""
    found: np.ndarray = classes.by_class(scores.astype(np.float64)).max(axis=1)
    return found
