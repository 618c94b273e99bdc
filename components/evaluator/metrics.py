"""The metrics of an evaluation. `metrics` is the only list: a new metric is a row there.

All metrics are functions of counts. The size of the counts is bounded, and the counts of the parts
of a split are added. The tests compare the metrics with those of TensorFlow Model Analysis (TFMA),
which are equal.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.stats import binomtest

from components.evaluator.thresholds import Evaluation
from preprocessing.labels import Labels

BUCKETS = 10_000
"""Number of buckets in a histogram of predictions. The buckets are those of TFMA's AUC: the first
one has a width of 0.0002, the others of 0.0001, and the last one contains only the prediction 1."""
TOP = 3
"""Number of the most probable classes among which a label counts as found."""
_SMALLEST = 1e-7
"""Least probability in a logarithm, about the precision of a float32 near 1."""
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
      confusion: reviews by label and predicted label, int64 [classes, classes].
      histogram: reviews by case and bucket of a probability, int64 [2, BUCKETS], sparse. Of two
        classes, the case is the label, and the probability that of the second class. Of more, the
        case is whether the answer is right, and the probability that of the answer.
      total: sum of these probabilities.
      loss: sum of the negative logarithms of the probabilities of the labels, in nats.
      top: number of reviews whose label is among the TOP most probable classes.
    """

    confusion: np.ndarray
    histogram: csr_matrix
    total: float
    loss: float
    top: int

    @classmethod
    def from_predictions(cls, labels: np.ndarray, scores: np.ndarray, classes: Labels) -> Counts:
        """Return the counts of reviews.

        Args:
          labels: int64 [reviews].
          scores: see `Labels.decide`, float64.
          classes: the classes.

        Raises:
          ValueError: a score is not in [0, 1].
        """
        if not np.all((scores >= 0) & (scores <= 1)):
            raise ValueError("a prediction is not a probability in [0, 1]")
        predicted, number = classes.decide(scores), classes.number
        of_label = classes.of_label(scores, labels)
        if classes.is_binary:
            cases, probabilities, top = labels, scores, len(labels)
        else:
            cases, probabilities = (predicted == labels).astype(np.int64), scores.max(axis=1)
            above = (scores > of_label[:, np.newaxis]).sum(axis=1)
            top = int(np.count_nonzero(above < TOP))
        # The order of the operations is that of TFMA, so the rounding is equal.
        buckets = np.clip((probabilities * BUCKETS + 1).astype(np.int64) - 2, 0, BUCKETS - 1)
        ones = np.ones(len(labels), np.int64)
        pairs = np.bincount(labels * number + predicted, minlength=number * number)
        return cls(
            confusion=pairs.reshape(number, number),
            histogram=csr_matrix((ones, (cases, buckets)), (2, BUCKETS)),
            total=float(probabilities.sum()),
            loss=float(-np.log(np.maximum(of_label, _SMALLEST)).sum()),
            top=top,
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            confusion=self.confusion + other.confusion,
            histogram=self.histogram + other.histogram,
            total=self.total + other.total,
            loss=self.loss + other.loss,
            top=self.top + other.top,
        )

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Counts:
        """Return the counts that `to_json` converted.

        Args:
          stored: the result of `to_json`.

        Raises:
          KeyError, ValueError, TypeError: `stored` has another form.
        """
        cases, buckets, reviews = stored["histogram"]
        return cls(
            confusion=np.array(stored["confusion"], np.int64),
            histogram=csr_matrix((reviews, (cases, buckets)), (2, BUCKETS), np.int64),
            total=stored["total"],
            loss=stored["loss"],
            top=stored["top"],
        )

    def to_json(self) -> dict[str, Any]:
        """Return the counts as lists and numbers, which JSON can represent."""
        cells = self.histogram.tocoo()
        histogram = [cells.row.tolist(), cells.col.tolist(), cells.data.tolist()]
        return {
            "histogram": histogram,
            "confusion": self.confusion.tolist(),
            "total": self.total,
            "loss": self.loss,
            "top": self.top,
        }

    @property
    def examples(self) -> int:
        """The number of reviews."""
        return int(self.confusion.sum())

    def curve(self) -> Iterator[Point]:
        """Yield the rates of two classes at descending thresholds.

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
      tfma: its class in TFMA's configuration; empty if TFMA has no such metric.
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


def metrics(labels: Labels) -> tuple[Metric, ...]:
    """Return all metrics of a model."""
    return _binary_metrics(labels) if labels.is_binary else _class_metrics(labels)


_EXAMPLES = Metric("example_count", "", "ExampleCount", function=lambda counts: counts.examples)
MACRO_F1 = Metric("macro_f1", "macro F1", "", function=lambda counts: _macro_f1(counts))


@functools.cache
def _class_metrics(labels: Labels) -> tuple[Metric, ...]:
    """Return the metrics of a model with more than two classes."""
    found = [
        _EXAMPLES,
        dataclasses.replace(
            ACCURACY, name="sparse_categorical_accuracy", tfma="SparseCategoricalAccuracy"
        ),
        MACRO_F1,
        Metric(
            "sparse_categorical_crossentropy",
            "log loss",
            "SparseCategoricalCrossentropy",
            function=lambda counts: ratio(counts.loss, counts.examples),
        ),
        Metric(
            f"top_{TOP}_accuracy",
            f"label among the best {TOP}",
            "",
            lambda counts: (counts.top, counts.examples),
        ),
        Metric(
            "calibration",
            "calibration",
            "",
            function=lambda counts: ratio(counts.total, counts.confusion.trace()),
        ),
    ]
    if labels.is_ordered:
        found += [
            Metric("mean_absolute_error", "mean absolute error", "", function=_absolute_error),
            Metric("weighted_kappa", "quadratic weighted kappa", "", function=_weighted_kappa),
        ]
    for label in range(labels.number):
        found += [
            _recall(labels, label, f"recall_{label}", ""),
            _precision(labels, label, f"precision_{label}", ""),
            _f1_metric(labels, label),
        ]
    return tuple(found)


def _f1_metric(labels: Labels, label: int) -> Metric:
    return Metric(
        f"f1_{label}",
        f"F1 of {labels.names[label]} reviews",
        "",
        function=lambda counts: float(_f1(counts)[label]),
    )


def _f1(counts: Counts) -> np.ndarray:
    """Return the F1 of each class, float64 [classes]; NaN for one without reviews and answers."""
    both = counts.confusion.sum(axis=0) + counts.confusion.sum(axis=1)
    with np.errstate(invalid="ignore"):
        f1: np.ndarray = 2 * counts.confusion.diagonal() / both
    return f1


def _macro_f1(counts: Counts) -> float:
    """Return the mean F1 of the classes that have reviews or answers."""
    found = _f1(counts)
    return float(found[~np.isnan(found)].mean()) if counts.examples else math.nan


def _absolute_error(counts: Counts) -> float:
    """Return the mean distance of label and answer in steps of the order."""
    steps = np.arange(len(counts.confusion))
    distances = np.abs(steps[:, np.newaxis] - steps)
    return ratio((distances * counts.confusion).sum(), counts.examples)


def _weighted_kappa(counts: Counts) -> float:
    """Return the kappa of Cohen, "Weighted kappa" (1968), with quadratic weights.

    It is 1 for perfect answers and 0 for independent ones; NaN if all labels and answers are equal.
    """
    steps = np.arange(len(counts.confusion))
    weights = (steps[:, np.newaxis] - steps) ** 2
    by_chance = np.outer(counts.confusion.sum(axis=1), counts.confusion.sum(axis=0))
    expected = (weights * by_chance).sum() / max(counts.examples, 1)
    return 1 - ratio((weights * counts.confusion).sum(), expected)


@functools.cache
def _binary_metrics(labels: Labels) -> tuple[Metric, ...]:
    """Return the metrics of a model with two classes."""
    return (
        _EXAMPLES,
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
