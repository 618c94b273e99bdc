"""The figures of the Evaluator for a report, from its counts, with confidence intervals."""

from __future__ import annotations

import re
from typing import NamedTuple

from components.evaluator.files import CANDIDATE, WHOLE, read
from components.evaluator.metrics import (
    ACCURACY,
    METRICS,
    Check,
    Counts,
    Interval,
    Metric,
    Point,
    Tenth,
    constant_answer,
)
from preprocessing.features import THRESHOLD, UNDECIDED


class Figure(NamedTuple):
    """A metric of the candidate.

    Attributes:
      name: its name in the report.
      value: its value on the test split.
      interval: None if none is known.
      baseline: the value of the baseline; None without a baseline.
    """

    name: str
    value: float
    interval: Interval | None = None
    baseline: float | None = None


class SliceAccuracy(NamedTuple):
    feature: str
    value: str
    examples: int
    accuracy: float
    interval: Interval


class Evaluation(NamedTuple):
    """The figures of one evaluation.

    Attributes:
      examples: number of reviews in the test split.
      constant_answer: the accuracy of a constant answer, as a clause.
      metrics: the metrics of all reviews.
      slices: the accuracy of each slice.
      checks: the thresholds, next to the values of the candidate.
      confusion: counts, rows are the labels negative and positive, columns the predictions.
      curve, tenths: see `Counts`.
      undecided: number and accuracy of the reviews whose probability is near the threshold; None if
        there are none.
    """

    examples: int
    constant_answer: str
    metrics: list[Figure]
    slices: list[SliceAccuracy]
    checks: list[Check]
    confusion: list[list[int]]
    curve: list[Point]
    tenths: list[Tenth]
    undecided: tuple[int, float] | None = None


def read_evaluation(uri: str) -> Evaluation:
    """Read the output `evaluation` of the Evaluator.

    Args:
      uri: of the artifact.

    Raises:
      InputError: an earlier version wrote the evaluation.
    """
    results = read(uri)
    own = results.candidate
    slices = [
        _slice_accuracy(*of_slice, models[CANDIDATE])
        for of_slice, models in results.slices.items()
        if of_slice != WHOLE
    ]
    tenths = list(own.tenths())
    return Evaluation(
        examples=own.examples,
        constant_answer=constant_answer(own),
        metrics=[_figure(metric, own, results.baseline) for metric in METRICS if metric.title],
        slices=sorted(slices, key=lambda each: (each.feature, _first_number(each.value))),
        checks=results.checks(),
        confusion=own.confusion.tolist(),
        curve=list(own.curve()),
        tenths=tenths,
        undecided=_undecided(tenths),
    )


def _figure(metric: Metric, own: Counts, base: Counts | None) -> Figure:
    baseline = metric.value(base) if base is not None else None
    return Figure(metric.title, metric.value(own), metric.interval(own), baseline)


def _slice_accuracy(feature: str, value: str, counts: Counts) -> SliceAccuracy:
    interval = ACCURACY.interval(counts)
    assert interval, "a slice has reviews"
    return SliceAccuracy(feature, value, counts.examples, ACCURACY.value(counts), interval)


def _undecided(tenths: list[Tenth]) -> tuple[int, float] | None:
    # Rounded, because 1 - 0.7 is more than 0.3.
    near = [each for each in tenths if round(1 - UNDECIDED, 9) <= each.lower < UNDECIDED]
    examples = sum(each.negative + each.positive for each in near)
    right = sum(each.positive if each.lower >= THRESHOLD else each.negative for each in near)
    return (examples, right / examples) if examples else None


def _first_number(name: str) -> int:
    found = re.search(r"\d+", name)
    return int(found[0]) if found else 0
