"""The classes of a report: which of them need attention, and what they are confused with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from components.evaluator.counts import Confusion, Counts
from components.evaluator.files import ConfusedReviews, Results, WrongAnswer
from components.evaluator.metrics import class_metrics, f1_scores
from preprocessing.labels import Labels

MATRIX_CLASSES = 25
"""Maximum number of classes in the picture of the confusion matrix."""
_ROWS = 100
"""Maximum number of classes in a table."""
_CONFUSIONS = 20
"""Maximum number of confusions in a list."""


class Figure(NamedTuple):
    """A metric of a class: its value, which may be NaN, and its 95 % confidence interval."""

    value: float
    interval: tuple[float, float] | None


class ClassRow(NamedTuple):
    """A class in the table of a report.

    Attributes:
      name: the name of the class.
      reviews: the number of its test reviews.
      figures: its recall, precision and F1.
      confused: the most frequent wrong answer to its reviews, and its number; None without any.
    """

    name: str
    reviews: int
    figures: Sequence[Figure]
    confused: tuple[str, int] | None


class ShownConfusion(NamedTuple):
    """A confusion in the list of a report.

    Attributes:
      label: the class of the reviews.
      predicted: the class of the answers.
      found: the numbers.
      texts: some of these reviews.
    """

    label: str
    predicted: str
    found: Confusion
    texts: Sequence[WrongAnswer]


def class_rows(counts: Counts, labels: Labels, limit: int | None = _ROWS) -> list[ClassRow]:
    """Return the classes that need attention most, the first one most urgently.

    These are the classes that were not tested, and then those with the lowest F1. Of classes with
    equal F1 the one with more reviews is first. The table of two classes is empty, because their
    figures are in the table of the metrics.

    Args:
      counts: the counts of the candidate.
      labels: the classes.
      limit: the maximum number of classes; None: all.
    """
    if labels.is_binary:
        return []
    order = urgent_classes(counts, limit)
    wrong = counts.pairs.tolil(copy=True)
    wrong.setdiag(0)
    by_label = wrong.tocsr()
    return [_row(counts, labels, label, by_label[label].toarray()[0]) for label in order]


def urgent_classes(counts: Counts, limit: int | None) -> list[int]:
    """Return the classes that need attention most, in the order of `class_rows`.

    Args:
      counts: the counts of the candidate.
      limit: the maximum number of classes; None: all.
    """
    urgency = np.where(counts.labelled > 0, f1_scores(counts), -1.0)
    order: list[int] = np.lexsort((-counts.labelled, urgency))[:limit].tolist()
    return order


def _row(counts: Counts, labels: Labels, label: int, wrong: np.ndarray) -> ClassRow:
    figures = [
        Figure(metric.value(counts), metric.interval(counts))
        for metric in class_metrics(labels, label)
    ]
    most = int(wrong.argmax())
    confused = (labels.names[most], int(wrong[most])) if wrong[most] else None
    return ClassRow(labels.names[label], int(counts.labelled[label]), figures, confused)


def shown_confusions(results: Results, texts: ConfusedReviews) -> list[ShownConfusion]:
    """Return the most frequent confusions of more than two classes, with texts.

    Args:
      results: the evaluation.
      texts: the result of `files.read_confusions`.
    """
    if results.labels.is_binary:
        return []
    names = results.labels.names
    return [
        ShownConfusion(
            names[found.label],
            names[found.predicted],
            found,
            texts.get((found.label, found.predicted), ()),
        )
        for found in results.candidate.confusions(_CONFUSIONS)
    ]


def matrix_classes(counts: Counts, labels: Labels) -> list[int]:
    """Return the classes in the picture of the confusion matrix, in their order.

    Of many classes they are those of the most frequent confusions; none if there is no confusion.
    """
    if labels.number <= MATRIX_CLASSES:
        return list(range(labels.number))
    chosen: set[int] = set()
    for found in counts.confusions(labels.number):
        pair = {found.label, found.predicted}
        if len(chosen | pair) > MATRIX_CLASSES:
            break
        chosen |= pair
    return sorted(chosen)


def classes_csv(counts: Counts, labels: Labels) -> str:
    """Return the metrics of all classes as CSV, the class that needs most attention first.

    For two classes it is empty, see `class_rows`.
    """
    rows = class_rows(counts, labels, limit=None)
    if not rows:
        return ""
    lines = [f"class,{labels.nouns},recall,precision,f1"]
    for row in rows:
        name = row.name.replace('"', '""')
        values = ["" if math.isnan(each.value) else f"{each.value:.6f}" for each in row.figures]
        lines.append(f'"{name}",{row.reviews},{",".join(values)}')
    return "\n".join([*lines, ""])
