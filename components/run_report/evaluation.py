"""The figures of the Evaluator for a report, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow_model_analysis as tfma
from scipy.stats import binomtest

from components.evaluator.metrics import (
    ACCURACY,
    ACCURACY_CLASS,
    BASELINE,
    CANDIDATE,
    EXAMPLE_COUNT,
    metrics_by_model,
)
from core.files import without_magic

_NAMES = {
    ACCURACY: "accuracy",
    "auc": "AUC",
    "precision": "precision",
    "recall": "recall",
    "calibration": "calibration",
}
"""Metric of TFMA -> its name in the report."""
_CONFIDENCE = 0.95
_Z = 1.96


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float


class Metric(NamedTuple):
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


class Slice(NamedTuple):
    """The accuracy on a slice of the test split."""

    name: str
    examples: int
    accuracy: float
    interval: Interval


class Threshold(NamedTuple):
    """A threshold of the evaluation, next to the value of the candidate."""

    sentence: str
    passed: bool


class Evaluation(NamedTuple):
    """The figures of one evaluation."""

    examples: int
    metrics: list[Metric]
    slices: list[Slice]
    thresholds: list[Threshold]

    def of_slices(self, feature: str) -> dict[str, int]:
        """Return the value of a feature -> the Examples of its slice."""
        start = f"{feature} "
        return {
            each.name.removeprefix(start): each.examples
            for each in self.slices
            if each.name.startswith(start) and "," not in each.name
        }


def read_evaluation(uri: str, positives: float | None) -> Evaluation:
    """Read the output `evaluation` of the Evaluator.

    Args:
      uri: of the artifact.
      positives: the fraction of positive Examples, for the interval of AUC; None: unknown.
    """
    uri = without_magic(uri)
    loaded = list(tfma.load_metrics(uri))
    slices = []
    for metrics in loaded:
        keys = metrics.slice_key.single_slice_keys
        of_slice = metrics_by_model(metrics).get(CANDIDATE, {})
        if keys and of_slice.get(EXAMPLE_COUNT):
            name, examples = ", ".join(map(_slice_value, keys)), int(of_slice[EXAMPLE_COUNT])
            interval = accuracy_interval(of_slice[ACCURACY], examples)
            slices.append(Slice(name, examples, of_slice[ACCURACY], interval))
    own, base = _overall(loaded)
    examples = int(own.get(EXAMPLE_COUNT, 0))
    found = [
        _metric(name, own[name], base.get(name), examples, positives)
        for name in _NAMES
        if name in own
    ]
    slices.sort(key=lambda each: _first_number(each.name))
    return Evaluation(examples, found, slices, list(_thresholds(uri, own, base)))


def missed_thresholds(uri: str) -> list[str]:
    """Return a sentence for each threshold that the candidate missed.

    Args:
      uri: of the output `evaluation` of the Evaluator.
    """
    uri = without_magic(uri)
    own, base = _overall(tfma.load_metrics(uri))
    return [each.sentence for each in _thresholds(uri, own, base) if not each.passed]


def _overall(loaded: Iterable[Any]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the metrics of the candidate and of the baseline on all Examples.

    Raises:
      ValueError: the evaluation is not complete.
    """
    for metrics in loaded:
        if not metrics.slice_key.single_slice_keys:
            by_model = metrics_by_model(metrics)
            return by_model.get(CANDIDATE, {}), by_model.get(BASELINE, {})
    raise ValueError("no overall slice in the evaluation")


def _thresholds(
    uri: str, own: Mapping[str, float], base: Mapping[str, float]
) -> Iterator[Threshold]:
    """Yield the thresholds of the accuracy, the only metric that has some."""
    if ACCURACY not in own:
        return
    value = own[ACCURACY]
    missed = {
        failure.metric_key.is_diff
        for of_slice in tfma.load_validation_result(uri).metric_validations_per_slice
        for failure in of_slice.failures
    }
    for limits in _limits(uri):
        if limits.HasField("value_threshold"):
            lowest = limits.value_threshold.lower_bound.value
            yield Threshold(
                f"{ACCURACY} is {value:.4f}, evaluation.min_accuracy requires {lowest:g}",
                False not in missed,
            )
        if limits.HasField("change_threshold") and ACCURACY in base:
            change = value - base[ACCURACY]
            allowed = -limits.change_threshold.absolute.value
            yield Threshold(
                f"{ACCURACY} is {abs(change):.4f} {'below' if change < 0 else 'above'} that of the "
                f"baseline, evaluation.max_accuracy_drop allows {allowed:g}",
                True not in missed,
            )


def _limits(uri: str) -> list[tfma.MetricThreshold]:
    """Return the thresholds of the accuracy that were in force in an evaluation."""
    return [
        sliced.threshold
        for spec in tfma.load_eval_result(uri).config.metrics_specs
        for metric in spec.metrics
        if metric.class_name == ACCURACY_CLASS
        for sliced in metric.per_slice_thresholds
    ]


def accuracy_interval(accuracy: float, examples: int) -> Interval:
    """Return Wilson's 95 % confidence interval of an accuracy on `examples` Examples."""
    right = round(accuracy * examples)
    interval = binomtest(right, examples).proportion_ci(_CONFIDENCE, "wilson")
    return Interval(float(interval.low), float(interval.high))


def auc_interval(auc: float, examples: int, positives: float) -> Interval:
    """Return the 95 % confidence interval of an AUC.

    Hanley and McNeil, "The Meaning and Use of the Area under a Receiver Operating Characteristic
    (ROC) Curve" (1982).

    Args:
      auc: in [0, 1].
      examples: number of Examples.
      positives: fraction of positive Examples, in (0, 1).
    """
    positive, negative = examples * positives, examples * (1 - positives)
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


def _metric(
    name: str, value: float, baseline: float | None, examples: int, positives: float | None
) -> Metric:
    interval = _interval(name, value, examples, positives)
    difference = None
    if interval and baseline is not None:
        of_baseline = _interval(name, baseline, examples, positives)
        if of_baseline:
            difference = difference_interval(value, interval, baseline, of_baseline)
    return Metric(_NAMES[name], value, interval, baseline, difference)


def _interval(name: str, value: float, examples: int, positives: float | None) -> Interval | None:
    if name == ACCURACY and examples:
        return accuracy_interval(value, examples)
    if name == "auc" and examples and positives and 0 < positives < 1:
        return auc_interval(value, examples, positives)
    return None


def _slice_value(key: Any) -> str:
    value = getattr(key, key.WhichOneof("kind"))
    text = value.decode() if isinstance(value, bytes) else str(value)
    return f"{key.column} {text}"


def _first_number(name: str) -> int:
    digits = "".join(letter if letter.isdigit() else " " for letter in name).split()
    return int(digits[0]) if digits else 0
