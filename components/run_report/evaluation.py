"""The figures of the Evaluator for a report, from its files, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from components.evaluator.files import (
    BASELINE,
    CANDIDATE,
    confusion_of,
    read,
    read_checks,
    read_plots,
)
from components.evaluator.metrics import (
    ACCURACY,
    EXAMPLE_COUNT,
    METRICS,
    Check,
    Confusion,
    Interval,
    Measured,
    Metric,
    constant_answer,
    difference_interval,
    ratio,
    wilson,
)
from trainer_module.export import THRESHOLD


class Figure(NamedTuple):
    """A metric of the candidate.

    Attributes:
      name: its name in the report.
      value: its value on the test split.
      interval: None if none is known.
      baseline: the value of the baseline; None without a baseline.
      difference: the interval of the value minus that of the baseline; None if none is known.
    """

    name: str
    value: float
    interval: Interval | None = None
    baseline: float | None = None
    difference: Interval | None = None


class SliceAccuracy(NamedTuple):
    """The accuracy on a slice of the test split."""

    feature: str
    value: str
    examples: int
    accuracy: float
    interval: Interval


class Bin(NamedTuple):
    """The reviews whose probability is in one tenth of [0, 1].

    Attributes:
      predicted: mean probability of being positive.
      observed: fraction of positive reviews.
    """

    predicted: float
    observed: float


class Undecided(NamedTuple):
    """The reviews whose probability is near the threshold, from 0.3 to 0.7."""

    examples: int
    accuracy: float


class Evaluation(NamedTuple):
    """The figures of one evaluation.

    Attributes:
      examples: number of reviews in the test split.
      constant_answer: the accuracy of a constant answer, as a clause.
      metrics: the metrics of all reviews.
      slices: the accuracy of each slice.
      checks: the thresholds, next to the values of the candidate.
      confusion: counts, rows are the labels negative and positive, columns the predictions.
      roc: (false positive rate, true positive rate, threshold), by descending threshold; empty in
        an evaluation by an earlier version, as are `bins`.
      bins: the calibration.
      undecided: None if there are no such reviews.
    """

    examples: int
    constant_answer: str
    metrics: list[Figure]
    slices: list[SliceAccuracy]
    checks: list[Check]
    confusion: Confusion
    roc: list[tuple[float, float, float]]
    bins: list[Bin]
    undecided: Undecided | None = None


def read_evaluation(uri: str) -> Evaluation:
    """Read the output `evaluation` of the Evaluator.

    Args:
      uri: of the artifact.

    Raises:
      ValueError: the evaluation is not complete.
    """
    whole, *others = read(uri)
    own, base = whole.models[CANDIDATE], whole.models.get(BASELINE)
    slices = []
    for each in others:
        model = each.models.get(CANDIDATE)
        if model and model.values.get(EXAMPLE_COUNT):
            examples, accuracy = int(model.values[EXAMPLE_COUNT]), model.values[ACCURACY]
            interval = wilson(round(accuracy * examples), examples)
            slices.append(SliceAccuracy(*each.slice, examples, accuracy, interval))
    slices.sort(key=lambda each: (each.feature, _first_number(each.value)))
    plots = read_plots(uri)
    points = plots.confusion_matrix_at_thresholds.matrices if plots else []
    buckets = plots.calibration_histogram_buckets.buckets if plots else []
    return Evaluation(
        examples=int(own.values[EXAMPLE_COUNT]),
        constant_answer=constant_answer(own.confusion),
        metrics=[
            _figure(metric, own, base)
            for metric in METRICS
            if metric.title and metric.name in own.values
        ],
        slices=slices,
        checks=read_checks(uri),
        confusion=own.confusion,
        roc=[_point(matrix) for matrix in points],
        bins=[
            Bin(
                bucket.total_weighted_refined_prediction.value / bucket.num_weighted_examples.value,
                bucket.total_weighted_label.value / bucket.num_weighted_examples.value,
            )
            for bucket in buckets
        ],
        undecided=_undecided(buckets),
    )


def _undecided(buckets: Iterable[Any]) -> Undecided | None:
    examples = right = 0
    for bucket in buckets:
        lower = bucket.lower_threshold_inclusive
        if 0.3 <= lower < 0.7:
            here, positive = bucket.num_weighted_examples.value, bucket.total_weighted_label.value
            examples += round(here)
            right += round(positive if lower >= THRESHOLD else here - positive)
    return Undecided(examples, right / examples) if examples else None


def _point(matrix: Any) -> tuple[float, float, float]:
    (true_negative, false_positive), (false_negative, true_positive) = confusion_of(matrix)
    return (
        ratio(false_positive, false_positive + true_negative),
        ratio(true_positive, true_positive + false_negative),
        matrix.threshold,
    )


def _figure(metric: Metric, own: Measured, base: Measured | None) -> Figure:
    value, interval = _value(metric, own)
    other, other_interval = _value(metric, base) if base else (None, None)
    difference = None
    if interval and other is not None and other_interval:
        difference = difference_interval(value, interval, other, other_interval)
    return Figure(metric.title, value, interval, other, difference)


def _value(metric: Metric, model: Measured) -> tuple[float, Interval | None]:
    value = model.values.get(metric.name, math.nan)
    if metric.fraction and math.isfinite(value):
        return value, wilson(*metric.fraction(model.confusion))
    if metric.interval and math.isfinite(value):
        return value, metric.interval(value, model.confusion)
    return value, None


def _first_number(name: str) -> int:
    digits = "".join(letter if letter.isdigit() else " " for letter in name).split()
    return int(digits[0]) if digits else 0
