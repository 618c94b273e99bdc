"""The counts of the answers of one model, from which all metrics follow.

The size of the counts is bounded, and the counts of the parts of a split are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from preprocessing.labels import Labels

BUCKETS = 10_000
"""Number of buckets in a histogram of predictions. The buckets are those of TFMA's AUC: the first
one has a width of 0.0002, the others of 0.0001, and the last one contains only the prediction 1."""
TOP = 3
"""Number of the most probable classes among which a label counts as found."""
_SMALLEST = 1e-7
"""Least probability in a logarithm, which is that of Keras."""
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
      negative: the number of reviews of the case 0, see `Counts.histogram`.
      positive: the number of reviews of the case 1.
    """

    lower: float
    mean: float
    negative: int
    positive: int


class Confusion(NamedTuple):
    """Reviews of one class that a model answers with another class.

    Attributes:
      label: the class of the reviews.
      predicted: the class of the answers.
      reviews: the number of these reviews.
      share: their share of the reviews of the class.
    """

    label: int
    predicted: int
    reviews: int
    share: float


@dataclass(frozen=True)
class Counts:
    """The counts of one model for the reviews of one slice.

    Attributes:
      pairs: reviews by label and predicted label, int64 [classes, classes], sparse, because its
        dense form has a million cells for a thousand classes.
      histogram: reviews by case and bucket of a probability, int64 [2, BUCKETS], sparse. Of two
        classes, the case is the label, and the probability that of the second class. Of more, the
        case is whether the answer is right, and the probability that of the answer.
      total: sum of these probabilities.
      loss: sum of the negative logarithms of the probabilities of the labels, in nats; 0 for two
        classes, of which no metric uses it.
      top: number of reviews whose label is among the TOP most probable classes; 0 for two classes.
    """

    pairs: csr_matrix
    histogram: csr_matrix
    total: float
    loss: float = 0.0
    top: int = 0

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
        predicted = classes.decide(scores)
        if classes.is_binary:
            return cls(
                pairs=_count(labels, predicted, (2, 2)),
                histogram=_count(labels, _buckets(scores), (2, BUCKETS)),
                total=float(scores.sum()),
            )
        of_label = classes.of_label(scores, labels)
        of_answer = classes.of_label(scores, predicted)
        is_right = (predicted == labels).astype(np.int64)
        return cls(
            pairs=_count(labels, predicted, (classes.number, classes.number)),
            histogram=_count(is_right, _buckets(of_answer), (2, BUCKETS)),
            total=float(of_answer.sum()),
            loss=float(-np.log(np.maximum(of_label, _SMALLEST)).sum()),
            top=int(np.count_nonzero(_rank(scores, labels, of_label) < TOP)),
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            pairs=self.pairs + other.pairs,
            histogram=self.histogram + other.histogram,
            total=self.total + other.total,
            loss=self.loss + other.loss,
            top=self.top + other.top,
        )

    @classmethod
    def from_json(cls, stored: dict[str, Any], classes: Labels) -> Counts:
        """Return the counts that `to_json` converted.

        Args:
          stored: the result of `to_json`.
          classes: the classes.

        Raises:
          KeyError, ValueError, TypeError: `stored` has another form.
        """
        histogram = _from_cells(stored["histogram"], (2, BUCKETS))
        if classes.is_binary:
            pairs = csr_matrix(np.array(stored["confusion"], np.int64))
            return cls(pairs, histogram, stored["total"])
        pairs = _from_cells(stored["confusion"], (classes.number, classes.number))
        return cls(pairs, histogram, stored["total"], stored["loss"], stored["top"])

    def to_json(self) -> dict[str, Any]:
        """Return the counts as lists and numbers, which JSON can represent.

        The confusion of two classes is a matrix. That of more classes is three lists, with the
        labels, the predicted labels and the numbers of the cells that are not 0.
        """
        stored = {"histogram": _cells(self.histogram)}
        if self.pairs.shape[0] == 2:
            return {**stored, "confusion": self.confusion.tolist(), "total": self.total}
        counted = {"total": self.total, "loss": self.loss, "top": self.top}
        return {**stored, "confusion": _cells(self.pairs), **counted}

    @property
    def examples(self) -> int:
        """The number of reviews."""
        return int(self.pairs.sum())

    @property
    def confusion(self) -> np.ndarray:
        """`pairs` as a dense array."""
        dense: np.ndarray = self.pairs.toarray()
        return dense

    def confusion_of(self, classes: Sequence[int]) -> np.ndarray:
        """Return the part of `confusion` with these labels and these answers.

        Args:
          classes: the labels of at least one class.
        """
        dense: np.ndarray = self.pairs[classes][:, classes].toarray()
        return dense

    @cached_property
    def labelled(self) -> np.ndarray:
        """The number of reviews of each class, int64 [classes]."""
        return np.asarray(self.pairs.sum(axis=1)).ravel()

    @cached_property
    def answered(self) -> np.ndarray:
        """The number of answers with each class, int64 [classes]."""
        return np.asarray(self.pairs.sum(axis=0)).ravel()

    @cached_property
    def right(self) -> np.ndarray:
        """The number of right answers with each class, int64 [classes]."""
        return np.asarray(self.pairs.diagonal())

    def confusions(self, number: int) -> list[Confusion]:
        """Return the most frequent confusions of one class with another one.

        Of equally frequent ones, that with the greater share of its class is first.

        Args:
          number: the maximum number of confusions.
        """
        cells = self.pairs.tocoo()
        is_wrong = (cells.row != cells.col) & (cells.data > 0)
        label, predicted, reviews = (
            cells.row[is_wrong],
            cells.col[is_wrong],
            cells.data[is_wrong],
        )
        share = reviews / np.maximum(self.labelled[label], 1)
        order = np.lexsort((predicted, label, -share, -reviews))[:number].tolist()
        return [
            Confusion(int(label[n]), int(predicted[n]), int(reviews[n]), float(share[n]))
            for n in order
        ]

    def curve(self) -> Iterator[Point]:
        """Yield the rates of two classes at descending thresholds; nothing of more classes.

        The thresholds are 1, the lower ends of fewer than 400 buckets that contain reviews, and 0.
        That of the first bucket, which has twice the width, is its middle.
        """
        if self.pairs.shape[0] > 2:
            return
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


def ratio(part: float, whole: float) -> float:
    """Return a quotient; NaN if the divisor is 0."""
    return float(part) / float(whole) if whole else float("nan")


def _count(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> csr_matrix:
    """Return the number of each pair of a row and a column."""
    return csr_matrix((np.ones(len(rows), np.int64), (rows, columns)), shape)


def _buckets(probabilities: np.ndarray) -> np.ndarray:
    """Return the bucket of each probability, int64."""
    # The order of the operations is that of TFMA, so the rounding is equal.
    return np.clip((probabilities * BUCKETS + 1).astype(np.int64) - 2, 0, BUCKETS - 1)


def _rank(scores: np.ndarray, labels: np.ndarray, of_label: np.ndarray) -> np.ndarray:
    """Return the number of classes that precede the label of each review, int64 [reviews].

    Of equally probable classes, the first one precedes, as in `Labels.decide`.
    """
    above = (scores > of_label[:, np.newaxis]).sum(axis=1)
    is_before = np.arange(scores.shape[1]) < labels[:, np.newaxis]
    ties: np.ndarray = ((scores == of_label[:, np.newaxis]) & is_before).sum(axis=1)
    return above + ties


def _cells(matrix: csr_matrix) -> list[list[int]]:
    """Return the rows, the columns and the values of the cells that are not 0."""
    cells = matrix.tocoo()
    return [cells.row.tolist(), cells.col.tolist(), cells.data.tolist()]


def _from_cells(cells: list[list[int]], shape: tuple[int, int]) -> csr_matrix:
    """Return the matrix that `_cells` converted."""
    rows, columns, values = cells
    return csr_matrix((values, (rows, columns)), shape, np.int64)
