"""The metrics of an evaluation. `metrics` is the only list: a new metric is a row there.

All metrics are functions of counts. The size of the counts is bounded, and the counts of the parts
of a split are added. The tests compare the metrics with those of TensorFlow Model Analysis (TFMA),
which are equal.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.stats import binomtest

from components.evaluator.thresholds import Evaluation
from preprocessing.labels import THRESHOLD, Labels

BUCKETS = 10_000
"""Number of buckets in a histogram of predictions. The buckets are those of TFMA's AUC: the first
one has a width of 0.0002, the others of 0.0001, and the last one contains only the prediction 1."""
_CURVE_POINTS = 200
"""A curve with at least this number of buckets is thinned out, to fewer than twice as many."""


class Point(NamedTuple):
    """The rates of a model at a threshold. A rate that is not defined is NaN."""

    threshold: float
    false_positive_rate: float
    recall: float
    precision: float


class Tenth(NamedTuple):
    """The predictions in a tenth of [0, 1].

    Attributes:
      lower: the lower end of the tenth.
      mean: the mean of the predictions.
      negative: the number of negative reviews.
      positive: the number of positive reviews.
    """

    lower: float
    mean: float
    negative: int
    positive: int


@dataclass(frozen=True)
class Counts:
    """The counts of one model for the reviews of one slice.

    Attributes:
      histogram: reviews by label and bucket of the prediction, int64 [2, BUCKETS], sparse.
      confusion: reviews by label and predicted label, int64 [2, 2].
      total: sum of the predicted probabilities.
    """

    histogram: csr_matrix
    confusion: np.ndarray
    total: float

    @classmethod
    def from_predictions(cls, labels: np.ndarray, predictions: np.ndarray) -> Counts:
        """Return the counts of reviews.

        Args:
          labels: 0 or 1, int64 [reviews].
          predictions: the probability of being positive, float64 [reviews].

        Raises:
          ValueError: a prediction is not in [0, 1].
        """
        if not np.all((predictions >= 0) & (predictions <= 1)):
            raise ValueError("a prediction is not a probability in [0, 1]")
        # The order of the operations is that of TFMA, so the rounding is equal.
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

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Counts:
        """Return the counts that `to_json` converted.

        Args:
          stored: the result of `to_json`.

        Raises:
          KeyError, ValueError, TypeError: `stored` has another form.
        """
        labels, buckets, reviews = stored["histogram"]
        histogram = csr_matrix((reviews, (labels, buckets)), (2, BUCKETS), np.int64)
        return cls(histogram, np.array(stored["confusion"], np.int64), stored["total"])

    def to_json(self) -> dict[str, Any]:
        """Return the counts as lists and numbers, which JSON can represent."""
        cells = self.histogram.tocoo()
        histogram = [cells.row.tolist(), cells.col.tolist(), cells.data.tolist()]
        return {"histogram": histogram, "confusion": self.confusion.tolist(), "total": self.total}

    @property
    def examples(self) -> int:
        """The number of reviews."""
        return int(self.confusion.sum())

    def curve(self) -> Iterator[Point]:
        """Yield the rates at descending thresholds.

        The thresholds are 1, the upper ends of fewer than 400 buckets that contain reviews, and 0.
        """
        histogram = self.histogram.toarray()
        above = np.cumsum(histogram[:, ::-1], axis=1)[:, ::-1]
        negative, positive = histogram.sum(axis=1).tolist()
        found = np.flatnonzero(histogram.any(axis=0))[::-1]
        buckets = found[:: max(1, len(found) // _CURVE_POINTS)].tolist()
        inner = (((bucket + 1) / BUCKETS, above[:, bucket].tolist()) for bucket in buckets)
        for threshold, (false, true) in ((1.0, (0, 0)), *inner, (0.0, (negative, positive))):
            precision = ratio(true, true + false)
            yield Point(threshold, ratio(false, negative), ratio(true, positive), precision)

    def tenths(self) -> Iterator[Tenth]:
        """Yield the tenths of [0, 1] that contain predictions, ascending."""
        histogram = self.histogram.toarray()
        middles = np.minimum((np.arange(BUCKETS) + 1.5) / BUCKETS, 1)
        # The first tenth has one bucket less, because the first bucket has twice the width.
        tenths = np.minimum((middles * 10).astype(int), 9)
        for tenth in range(10):
            here = histogram[:, tenths == tenth]
            if here.any():
                mean = float((here @ middles[tenths == tenth]).sum() / here.sum())
                yield Tenth(tenth / 10, mean, *here.sum(axis=1).tolist())


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
      name: its name in the files of an evaluation, which is TFMA's.
      title: its name in reports; empty if it is not one of the `key_figures`.
      tfma: its class in TFMA's configuration.
      fraction: counts -> (part, whole), for a metric that is a fraction of reviews.
      function: counts -> value, for any other metric; NaN where it is not defined.
      minimum: the key of its minimum in the section `evaluation`; empty if there is none.
      max_drop: the key of its maximum drop below the baseline in the section `evaluation`; empty if
        there is none.
      remedy: a clause with the remedy for a value below the minimum.
    """

    name: str
    title: str
    tfma: str
    fraction: Callable[[Counts], tuple[int, int]] | None = None
    function: Callable[[Counts], float] = lambda _: math.nan
    minimum: str = ""
    max_drop: str = ""
    remedy: str = ""

    def value(self, counts: Counts) -> float:
        """Return the value; NaN if it is not defined."""
        return ratio(*self.fraction(counts)) if self.fraction else float(self.function(counts))

    def interval(self, counts: Counts) -> tuple[float, float] | None:
        """Return the 95 % confidence interval of a fraction; None for any other metric."""
        if self.fraction is None or math.isnan(self.value(counts)):
            return None
        return wilson(*self.fraction(counts))


def ratio(part: float, whole: float) -> float:
    """Return a quotient; NaN if the divisor is 0."""
    return float(part) / float(whole) if whole else math.nan


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Return the ends of Wilson's 95 % confidence interval of a fraction.

    Args:
      part: the number of reviews with a property.
      whole: the number of all reviews, at least 1.
    """
    interval = binomtest(part, whole).proportion_ci(0.95, "wilson")
    return float(interval.low), float(interval.high)


def constant_answer(counts: Counts, labels: Labels) -> str:
    """Return a clause with the accuracy of always answering the most frequent class."""
    reviews = counts.confusion.sum(axis=1)
    # Of equally frequent classes, the last one.
    most = len(reviews) - 1 - int(reviews[::-1].argmax())
    share = ratio(reviews[most], counts.examples)
    return f"always answering {labels.names[most]} would give {share:.4f}"


def _auc(counts: Counts) -> float:
    """Return the area under the ROC curve; NaN if all reviews have one label (TFMA: 0)."""
    false, true = np.cumsum(counts.histogram.toarray()[:, ::-1], axis=1, dtype=np.float64)
    heights = (true + np.append(0, true[:-1])) / 2
    return ratio(np.diff(false, prepend=0) @ heights, false[-1] * true[-1])


def _recall(labels: Labels, label: int, name: str, tfma: str) -> Metric:
    reviews = f"{labels.names[label]} reviews"
    return Metric(
        name,
        f"recall of {reviews}",
        tfma,
        lambda counts: (counts.confusion[label, label], counts.confusion[label].sum()),
        minimum="min_class_recall",
        remedy=f"set training.class_weights: balanced, add {reviews}, or set a lower "
        "evaluation.min_class_recall",
    )


def _precision(labels: Labels, label: int, name: str, tfma: str) -> Metric:
    return Metric(
        name,
        f"precision of {labels.names[label]} reviews",
        tfma,
        lambda counts: (counts.confusion[label, label], counts.confusion[:, label].sum()),
    )


ACCURACY = Metric(
    "binary_accuracy",
    "accuracy",
    "BinaryAccuracy",
    lambda counts: (counts.confusion.trace(), counts.examples),
    minimum="min_accuracy",
    max_drop="max_accuracy_drop",
)
AUC = Metric("auc", "AUC", "AUC", function=_auc)


@functools.cache
def metrics(labels: Labels) -> tuple[Metric, ...]:
    """Return all metrics of a model with two classes."""
    return (
        Metric("example_count", "", "ExampleCount", function=lambda counts: counts.examples),
        ACCURACY,
        AUC,
        _recall(labels, 0, "specificity", "Specificity"),
        _precision(labels, 0, "negative_predictive_value", "NegativePredictiveValue"),
        _recall(labels, 1, "recall", "Recall"),
        _precision(labels, 1, "precision", "Precision"),
        Metric(
            "calibration",
            "calibration",
            "Calibration",
            function=lambda counts: ratio(counts.total, counts.confusion[1].sum()),
        ),
    )


def key_figures(labels: Labels) -> list[Metric]:
    """Return the metrics of reports, runs and the pages of clusters."""
    return [metric for metric in metrics(labels) if metric.title]


class Check(NamedTuple):
    """The result of a comparison with a threshold.

    Attributes:
      sentence: the metric, its value for the candidate on the test split, and the threshold.
      passed: whether the value reaches the threshold.
    """

    sentence: str
    passed: bool


def check_thresholds(
    own: Counts, base: Counts | None, labels: Labels, settings: Evaluation
) -> list[Check]:
    """Compare the metrics of a candidate with the thresholds; return the result of each threshold.

    A value that is not defined does not reach a threshold. A minimum of 0 and a maximum drop of 1
    have no result, because every model reaches them.

    Args:
      own: the counts of the candidate on the test split.
      base: those of the baseline; None without one.
      labels: the classes of both.
      settings: the thresholds.
    """
    found = []
    for metric in metrics(labels):
        value = metric.value(own)
        minimum: float = getattr(settings, metric.minimum, 0.0)
        if minimum > 0:
            passed = value >= minimum
            sentence = f"{metric.title} is {value:.4f}"
            if metric.remedy and metric.fraction:
                sentence += " ({:,} of {:,})".format(*metric.fraction(own))
            sentence += f", evaluation.{metric.minimum} requires {minimum:g}"
            if metric.remedy and not passed:
                sentence += f"; {metric.remedy}"
            found.append(Check(sentence, passed))
        drop: float = getattr(settings, metric.max_drop, 1.0)
        if drop < 1 and base is not None:
            change = value - metric.value(base)
            sentence = (
                f"{metric.title} is {abs(change):.4f} {'below' if change < 0 else 'above'} that of "
                f"the baseline, evaluation.{metric.max_drop} allows {drop:g}"
            )
            found.append(Check(sentence, change >= -drop))
    return found
