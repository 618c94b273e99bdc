"""The metrics of an evaluation. `metrics` is the only list: a new metric is a row there.

All metrics are functions of `counts.Counts`. The tests compare the metrics with those of TensorFlow
Model Analysis (TFMA) and of scikit-learn, which are equal.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from components.evaluator.counts import TOP, Counts, ratio
from core.intervals import wilson
from preprocessing.labels import SENTIMENT, Labels
from preprocessing.reading.records import printable


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
      name: its name in the files of an evaluation, which is TFMA's.
      title: its name in reports; empty if reports do not show it.
      tfma: its class in TFMA's configuration; empty if TFMA has no such metric.
      tfma_config: the arguments of this class as JSON; empty if it has none.
      fraction: counts -> (part, whole), for a metric that is a fraction of reviews.
      function: counts -> value, for any other metric; NaN where it is not defined.
      interval_function: counts -> 95 % confidence interval, for a metric that is no fraction and
        has one; None where it is not defined.
      label: the class of a metric of one class of several; None for any other metric.
    """

    name: str
    title: str
    tfma: str = ""
    tfma_config: str = ""
    fraction: Callable[[Counts], tuple[int, int]] | None = None
    function: Callable[[Counts], float] = lambda _: math.nan
    interval_function: Callable[[Counts], tuple[float, float] | None] = lambda _: None
    label: int | None = None

    def value(self, counts: Counts) -> float:
        """Return the value; NaN if it is not defined."""
        return ratio(*self.fraction(counts)) if self.fraction else float(self.function(counts))

    def interval(self, counts: Counts) -> tuple[float, float] | None:
        """Return the 95 % confidence interval; None if there is none, or if it is not defined."""
        if self.fraction is None:
            return self.interval_function(counts)
        part, whole = self.fraction(counts)
        return wilson(part, whole) if whole else None


def class_name(labels: Labels, label: int) -> str:
    """Return the name of a class in a sentence, such as `negative reviews` or `class refunds`."""
    name = printable(labels.names[label])
    return f"{name} reviews" if labels.names == SENTIMENT.names else f"class {name}"


def reviews_of_class(labels: Labels, label: int) -> str:
    """Return the reviews of a class, such as `negative reviews` or `texts of class refunds`."""
    name = class_name(labels, label)
    return name if labels.names == SENTIMENT.names else f"{labels.nouns} of {name}"


def constant_share(counts: Counts) -> float:
    """Return the accuracy of always answering the most frequent class; NaN without reviews."""
    return ratio(counts.labelled.max(), counts.examples)


def constant_answer(counts: Counts, labels: Labels) -> str:
    """Return a clause with the accuracy of always answering the most frequent class."""
    reviews = counts.labelled
    # Of equally frequent classes, the last one.
    most = len(reviews) - 1 - int(reviews[::-1].argmax())
    name = printable(labels.names[most])
    return f"always answering {name} would give {constant_share(counts):.4f}"


def _auc(counts: Counts) -> float:
    """Return the area under the ROC curve; NaN if all reviews have one label (TFMA: 0)."""
    false, true = np.cumsum(counts.histogram.toarray()[:, ::-1], axis=1, dtype=np.float64)
    heights = (true + np.append(0, true[:-1])) / 2
    return ratio(np.diff(false, prepend=0) @ heights, false[-1] * true[-1])


ACCURACY = Metric(
    "binary_accuracy",
    "accuracy",
    "BinaryAccuracy",
    fraction=lambda counts: (counts.right.sum(), counts.examples),
)
AUC = Metric("auc", "AUC", "AUC", function=_auc)


def metrics(labels: Labels) -> tuple[Metric, ...]:
    """Return all metrics of a model."""
    return _binary_metrics(labels) if labels.is_binary else _multiclass_metrics(labels)


def key_figures(labels: Labels) -> list[Metric]:
    """Return the metrics of reports, runs and the pages of clusters.

    Of more than two classes they are metrics of all classes together. `class_metrics` are the
    others.
    """
    return [each for each in metrics(labels) if each.title and each.label is None]


def class_metrics(labels: Labels, label: int) -> tuple[Metric, Metric, Metric]:
    """Return the recall, the precision and the F1 of a class.

    Args:
      labels: the classes.
      label: the index of the class.
    """
    return (
        _recall(labels, label, "recall", label=label),
        _precision(labels, label, "precision", label=label),
        Metric(
            "f1_score",
            f"F1 of {class_name(labels, label)}",
            function=lambda counts: float(f1_scores(counts)[label]),
            interval_function=lambda counts: _f1_interval(counts, label),
            label=label,
        ),
    )


_EXAMPLES = Metric("example_count", "", "ExampleCount", function=lambda counts: counts.examples)


@functools.lru_cache(maxsize=8)
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
            function=lambda counts: ratio(counts.total, counts.labelled[1]),
        ),
    )


@functools.lru_cache(maxsize=8)
def _multiclass_metrics(labels: Labels) -> tuple[Metric, ...]:
    """Return the metrics of a model with more than two classes."""
    found = [
        _EXAMPLES,
        replace(ACCURACY, name="sparse_categorical_accuracy", tfma="SparseCategoricalAccuracy"),
        Metric("macro_f1", "macro F1", function=_macro_f1),
        Metric("lowest_recall", "lowest recall of a class", function=_lowest_recall),
        Metric(
            "sparse_categorical_crossentropy",
            "log loss",
            "SparseCategoricalCrossentropy",
            function=lambda counts: ratio(counts.loss, counts.examples),
        ),
        Metric(
            "sparse_top_k_categorical_accuracy",
            f"label among the best {TOP}",
            "SparseTopKCategoricalAccuracy",
            json.dumps({"k": TOP}),
            fraction=lambda counts: (counts.top, counts.examples),
        ),
        Metric(
            "calibration",
            "calibration",
            function=lambda counts: ratio(counts.total, counts.right.sum()),
        ),
    ]
    if labels.is_ordered:
        found += [
            Metric("mean_absolute_error", "mean absolute error", function=_absolute_error),
            Metric("weighted_kappa", "quadratic weighted kappa", function=_weighted_kappa),
        ]
    for label in range(labels.number):
        found += class_metrics(labels, label)
    return tuple(found)


def _recall(
    labels: Labels, index: int, name: str, tfma: str = "", label: int | None = None
) -> Metric:
    title = f"recall of {class_name(labels, index)}"
    return Metric(
        name,
        title,
        tfma,
        fraction=lambda counts: (counts.right[index], counts.labelled[index]),
        label=label,
    )


def _precision(
    labels: Labels, index: int, name: str, tfma: str = "", label: int | None = None
) -> Metric:
    title = f"precision of {class_name(labels, index)}"
    return Metric(
        name,
        title,
        tfma,
        fraction=lambda counts: (counts.right[index], counts.answered[index]),
        label=label,
    )


def f1_scores(counts: Counts) -> np.ndarray:
    """Return the F1 of each class, float64 [classes]; NaN for one without reviews and answers."""
    both = counts.answered + counts.labelled
    with np.errstate(invalid="ignore"):
        f1: np.ndarray = 2 * counts.right / both
    return f1


def _f1_interval(counts: Counts, label: int) -> tuple[float, float] | None:
    """Return the "indirect Wilson" 95 % confidence interval of the F1 of a class.

    The method is that of Lam, Gopal and Qian, "Confidence Intervals for the F1 Score: A Comparison
    of Four Methods" (2023). The F1 is 2 s / (1 + s), where s is the fraction of right answers among
    the reviews that have the class as their label or as their answer. Wilson's interval of the
    fraction s is converted with this increasing function.
    """
    right = counts.right[label]
    either = counts.labelled[label] + counts.answered[label] - right
    if not either:
        return None
    low, high = wilson(right, either)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def _macro_f1(counts: Counts) -> float:
    """Return the mean F1 of the classes that have reviews or answers; NaN without reviews."""
    found = f1_scores(counts)
    return float(found[~np.isnan(found)].mean()) if counts.examples else math.nan


def _lowest_recall(counts: Counts) -> float:
    """Return the lowest recall of a class that has reviews; NaN without reviews."""
    here = counts.labelled > 0
    return float((counts.right[here] / counts.labelled[here]).min()) if here.any() else math.nan


def _absolute_error(counts: Counts) -> float:
    """Return the mean distance of label and answer in steps of the order."""
    cells = counts.pairs.tocoo()
    return ratio((np.abs(cells.row - cells.col) * cells.data).sum(), counts.examples)


def _weighted_kappa(counts: Counts) -> float:
    """Return the kappa of Cohen, "Weighted kappa" (1968), with quadratic weights.

    It is 1 for perfect answers and 0 for independent ones; NaN if all labels and answers are equal.
    """
    cells = counts.pairs.tocoo()
    steps = np.arange(len(counts.labelled), dtype=np.float64)
    weights = (steps[:, np.newaxis] - steps) ** 2
    by_chance = counts.labelled @ weights @ counts.answered / max(counts.examples, 1)
    distances = (cells.row - cells.col).astype(np.float64) ** 2
    return 1 - ratio((distances * cells.data).sum(), by_chance)
