"""The metrics of an evaluation. METRICS is the only list: a new metric is a row there.

All metrics are functions of counts, which are small, bounded and added up over the parts of a
split. They equal those of TensorFlow Model Analysis (TFMA), which the tests compare them with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.stats import binomtest

from preprocessing.features import CLASSES
from trainer_module.export import THRESHOLD

ACCURACY = "binary_accuracy"
EXAMPLE_COUNT = "example_count"
BUCKETS = 10_000
"""Buckets of a prediction, those of TFMA's AUC: two ten-thousandths, then one each, then 1."""
CALIBRATION_BINS = 10
_CURVE_POINTS = 200
_CONFIDENCE, _Z = 0.95, 1.96

Confusion = Sequence[Sequence[int]]
"""Reviews by label and predicted label, [2, 2]."""


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Counts:
    """What is counted of the predictions of one model for the reviews of one slice.

    Attributes:
      histogram: reviews by label and bucket of the prediction, int64 [2, BUCKETS], sparse.
      confusion: reviews by label and predicted label, int64 [2, 2].
      total: sum of the predicted probabilities.
    """

    histogram: csr_matrix
    confusion: np.ndarray
    total: float

    @classmethod
    def of(cls, labels: np.ndarray, predictions: np.ndarray) -> Counts:
        """Count reviews.

        Args:
          labels: 0 or 1, int64 [reviews].
          predictions: the probability of being positive, float64 [reviews].

        Raises:
          ValueError: a label or a prediction has another value.
        """
        if not np.isin(labels, (0, 1)).all():
            raise ValueError(f"labels from {labels.min()} to {labels.max()} are not 0 or 1")
        if not np.all((predictions >= 0) & (predictions <= 1)):
            raise ValueError("a prediction is not a probability in [0, 1]")
        # TFMA rounds in this order.
        buckets = np.clip((predictions * BUCKETS + 1).astype(np.int64) - 2, 0, BUCKETS - 1)
        ones = np.ones(len(labels), np.int64)
        cases = 2 * labels + (predictions > THRESHOLD)
        return cls(
            csr_matrix((ones, (labels, buckets)), (2, BUCKETS)),
            np.bincount(cases, minlength=4).reshape(2, 2),
            float(predictions.sum()),
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.histogram + other.histogram,
            self.confusion + other.confusion,
            self.total + other.total,
        )

    @property
    def examples(self) -> int:
        """Number of reviews."""
        return int(self.confusion.sum())

    @property
    def positives(self) -> int:
        """Number of reviews with the label 1."""
        return int(self.confusion[1].sum())

    def curve(self) -> Iterator[tuple[float, np.ndarray]]:
        """Yield thresholds, descending, and the reviews by label and predicted label, [2, 2].

        The first threshold is 1 and the last one 0. Between them are about 200 with a review.
        """
        histogram = self.histogram.toarray()
        above = np.cumsum(histogram[:, ::-1], axis=1)[:, ::-1]
        labels = histogram.sum(axis=1)
        yield 1.0, np.stack([labels, np.zeros(2, np.int64)], axis=1)
        found = np.flatnonzero(histogram.any(axis=0))[::-1]
        for bucket in found[:: max(1, len(found) // _CURVE_POINTS)].tolist():
            positive = above[:, bucket]
            yield (bucket + 1) / BUCKETS, np.stack([labels - positive, positive], axis=1)
        yield 0.0, np.stack([np.zeros(2, np.int64), labels], axis=1)

    def calibration(self) -> Iterator[tuple[float, float, int, int]]:
        """Yield the reviews of each tenth of [0, 1] with some.

        Yields:
          lower end, sum of the predictions to 0.0001 a review, number of reviews, of positive ones.
        """
        negative, positive = self.histogram.toarray()
        middles = (np.arange(BUCKETS) + 1.5) / BUCKETS
        # The first tenth has one bucket less, because two buckets of TFMA are one.
        bins = np.minimum((middles * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
        for number in range(CALIBRATION_BINS):
            here = bins == number
            examples = int((negative + positive)[here].sum())
            if examples:
                total = float(((negative + positive) * np.minimum(middles, 1))[here].sum())
                yield number / CALIBRATION_BINS, total, examples, int(positive[here].sum())


class Measured(NamedTuple):
    """The results of one model on one slice.

    Attributes:
      values: metric -> value.
      confusion: reviews by label and predicted label, [2, 2].
    """

    values: dict[str, float]
    confusion: Confusion


class Metric(NamedTuple):
    """A metric.

    Attributes:
      name: its name in the files of an evaluation, which is TFMA's.
      title: its name in reports; empty: it is not in the list of key figures.
      tfma: its class in TFMA's configuration.
      fraction: confusion -> (part, whole), for a metric that is a fraction of reviews.
      value: its value, for any other metric; NaN where it is not defined.
      interval: (value, confusion) -> confidence interval of such a value.
      minimum: the key of the section `evaluation` with the minimum that blesses a model.
      max_drop: the key with the maximum drop below the baseline.
      remedy: what to do if the minimum is not reached.
    """

    name: str
    title: str
    tfma: str
    fraction: Callable[[Confusion], tuple[int, int]] | None = None
    value: Callable[[Counts], float] = lambda _: math.nan
    interval: Callable[[float, Confusion], Interval] | None = None
    minimum: str = ""
    max_drop: str = ""
    remedy: str = ""


def _of_class(label: int, recall: tuple[str, str], precision: tuple[str, str]) -> Iterator[Metric]:
    """Yield the recall and the precision of a class.

    Args:
      label: the class.
      recall, precision: name and class in TFMA, where those of negative reviews are called
        differently.
    """
    reviews = f"{CLASSES[label]} reviews"
    yield Metric(
        recall[0],
        f"recall of {reviews}",
        recall[1],
        lambda confusion: (confusion[label][label], sum(confusion[label])),
        minimum="min_class_recall",
        remedy=f"set training.class_weights: balanced, add {reviews}, or set a lower "
        "evaluation.min_class_recall",
    )
    yield Metric(
        precision[0],
        f"precision of {reviews}",
        precision[1],
        lambda confusion: (confusion[label][label], confusion[0][label] + confusion[1][label]),
    )


def ratio(part: float, whole: float) -> float:
    """Return a quotient; NaN if the divisor is 0."""
    return float(part) / float(whole) if whole else math.nan


def wilson(part: int, whole: int) -> Interval:
    """Return Wilson's 95 % confidence interval of a fraction."""
    interval = binomtest(part, whole).proportion_ci(_CONFIDENCE, "wilson")
    return Interval(float(interval.low), float(interval.high))


def constant_answer(confusion: Confusion) -> str:
    """Return the accuracy of the better one of the two constant answers, as a clause."""
    labels = [sum(row) for row in confusion]
    most = int(labels[1] >= labels[0])
    share = ratio(labels[most], sum(labels))
    return f"always answering {CLASSES[most]} would give {share:.4f}"


def auc_interval(auc: float, confusion: Confusion) -> Interval:
    """Return the 95 % confidence interval of an AUC.

    Hanley and McNeil, "The Meaning and Use of the Area under a Receiver Operating Characteristic
    (ROC) Curve" (1982).
    """
    negative, positive = map(sum, confusion)
    if not negative * positive:
        return Interval(0.0, 1.0)
    both_positive, both_negative = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = (
        auc * (1 - auc)
        + (positive - 1) * (both_positive - auc**2)
        + (negative - 1) * (both_negative - auc**2)
    ) / (positive * negative)
    half = _Z * math.sqrt(max(0.0, variance))
    return Interval(max(0.0, auc - half), min(1.0, auc + half))


def difference_interval(
    value: float, interval: Interval, other: float, other_interval: Interval
) -> Interval:
    """Return the 95 % confidence interval of `value` minus `other`, from their own intervals.

    Newcombe, "Interval estimation for the difference between independent proportions" (1998),
    method 10. Two models that classify the same Examples make many mistakes in common, so their
    difference varies less, and the interval is wider than necessary.
    """
    difference = value - other
    below = math.hypot(value - interval.low, other_interval.high - other)
    above = math.hypot(interval.high - value, other - other_interval.low)
    return Interval(difference - below, difference + above)


def _auc(counts: Counts) -> float:
    """Return the area under the ROC; NaN for reviews of one label, where TFMA returns 0."""
    false, true = np.cumsum(counts.histogram.toarray()[:, ::-1], axis=1, dtype=np.float64)
    heights = (true + np.append(0, true[:-1])) / 2
    return ratio(np.diff(false, prepend=0) @ heights, false[-1] * true[-1])


METRICS = (
    Metric(EXAMPLE_COUNT, "", "ExampleCount", value=lambda counts: counts.examples),
    Metric(
        ACCURACY,
        "accuracy",
        "BinaryAccuracy",
        lambda confusion: (confusion[0][0] + confusion[1][1], sum(map(sum, confusion))),
        minimum="min_accuracy",
        max_drop="max_accuracy_drop",
    ),
    Metric("auc", "AUC", "AUC", value=_auc, interval=auc_interval),
    *_of_class(
        0,
        ("specificity", "Specificity"),
        ("negative_predictive_value", "NegativePredictiveValue"),
    ),
    *_of_class(1, ("recall", "Recall"), ("precision", "Precision")),
    Metric(
        "calibration",
        "calibration",
        "Calibration",
        value=lambda counts: ratio(counts.total, counts.positives),
    ),
)


class Check(NamedTuple):
    """A threshold on all reviews of the test split, and the value that is compared with it.

    Attributes:
      metric: the metric.
      is_change: whether `value` is a difference from the baseline.
      limit: the smallest value that passes.
      value: the value of the candidate, or its value minus that of the baseline.
      sentence: the value and the threshold in words.
    """

    metric: Metric
    is_change: bool
    limit: float
    value: float
    sentence: str

    @property
    def passed(self) -> bool:
        """Whether the threshold is reached. A value that is not defined does not reach it."""
        return self.value >= self.limit


def measure(counts: Counts) -> Measured:
    """Return the results of a model."""
    confusion = counts.confusion.tolist()
    found = {
        metric.name: ratio(*metric.fraction(confusion))
        if metric.fraction
        else float(metric.value(counts))
        for metric in METRICS
    }
    return Measured(found, confusion)


def thresholds(metric: Metric, limits: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Return the minimum of a metric and that of its change; None: no model can miss it.

    Args:
      metric: the metric.
      limits: key of the section `evaluation` -> value; a key that is missing is no threshold.
    """
    least, drop = limits.get(metric.minimum, 0.0), limits.get(metric.max_drop, 1.0)
    return (least if least > 0 else None), (-drop if drop < 1 else None)


def checks(own: Measured, base: Measured | None, limits: Mapping[str, Any]) -> list[Check]:
    """Compare a candidate with its thresholds; it is blessed if all checks have passed.

    Args:
      own: the candidate on the whole test split.
      base: the baseline; None if there is none.
      limits: see `thresholds`.

    Raises:
      KeyError: a metric with a threshold has no value.
    """
    found = []
    for metric in METRICS:
        least, least_change = thresholds(metric, limits)
        if least is not None:
            value = own.values[metric.name]
            shown = f"{value:.4f}" if math.isfinite(value) else "undefined"
            if metric.remedy and metric.fraction:
                shown += " ({:,} of {:,})".format(*metric.fraction(own.confusion))
            sentence = f"{metric.title} is {shown}, evaluation.{metric.minimum} requires {least:g}"
            check = Check(metric, False, least, value, sentence)
            if metric.remedy and not check.passed:
                check = check._replace(sentence=f"{sentence}; {metric.remedy}")
            found.append(check)
        if least_change is not None and base is not None:
            change = own.values[metric.name] - base.values[metric.name]
            sentence = (
                f"{metric.title} is {abs(change):.4f} {'below' if change < 0 else 'above'} that of "
                f"the baseline, evaluation.{metric.max_drop} allows {-least_change:g}"
            )
            found.append(Check(metric, True, least_change, change, sentence))
    return found
