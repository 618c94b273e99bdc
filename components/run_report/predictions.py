"""The candidate's predictions on test reviews: ROC, calibration, confusion matrix, mistakes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from tfx.utils import path_utils

from components.run_report.input_data import texts_of
from components.run_report.weights import contributions, largest_weights
from components.sample import read_sample
from serving.explain import Part, parts, variants
from serving.predictor import Predictor
from trainer_module.export import THRESHOLD

MOST_REVIEWS = 20_000
"""Greatest number of test reviews that a report predicts. This takes a second or two."""
MISTAKES = 20
_BATCH = 1024
_BINS = 10
_CURVE_POINTS = 200
_LONGEST_TEXT = 2000


class Bin(NamedTuple):
    """The reviews whose probability is in one tenth of [0, 1].

    Attributes:
      predicted: mean probability of being positive.
      observed: fraction of positive reviews.
      reviews: their number.
    """

    predicted: float
    observed: float
    reviews: int


class Mistake(NamedTuple):
    """A review that the model gets wrong.

    Attributes:
      text: the review, shortened.
      label: its label.
      probability: the predicted probability of being positive.
      parts: the parts of the text, with the effects of its first words.
      ngrams: (n-gram, its contribution), the largest first, if the model is a sum over n-grams.
    """

    text: str
    label: int
    probability: float
    parts: list[Part]
    ngrams: list[tuple[str, float]] = []


class Predictions(NamedTuple):
    """The predictions on the test split, or on a random sample of it.

    Attributes:
      reviews: number of predicted reviews.
      positives: fraction of positive ones.
      confusion: counts, rows are the labels negative and positive, columns the predictions.
      roc: (false positive rate, true positive rate, threshold), by descending threshold.
      bins: the calibration.
      mistakes: the mistakes with the highest confidence.
      ngrams: (text, weight) of frequent words and pairs of words, the most negative first.
    """

    reviews: int
    positives: float
    confusion: list[list[int]]
    roc: list[tuple[float, float, float]]
    bins: list[Bin]
    mistakes: list[Mistake]
    ngrams: list[tuple[str, float]]


def predict(examples: str, model: str, *, with_ngrams: bool) -> Predictions | None:
    """Predict test reviews with the model; None if there is no test review.

    Args:
      examples: URI of the raw Examples.
      model: URI of the model.
      with_ngrams: whether the model is a sum over n-grams, so that an n-gram has a weight.
    """
    sample = read_sample(os.path.join(examples, "Split-test"), MOST_REVIEWS)
    if not sample.examples:
        return None
    texts, labels = texts_of(sample.examples), np.array(sample.labels, np.int64)
    predictor = Predictor(path_utils.serving_model_path(model))
    scores = _probabilities(predictor, texts)
    return Predictions(
        reviews=len(texts),
        positives=float(labels.mean()),
        confusion=_confusion(labels, scores),
        roc=roc_curve(labels, scores),
        bins=_calibration(labels, scores),
        mistakes=[
            _mistake(texts[at], labels[at], predictor, with_ngrams)
            for at in worst_mistakes(labels, scores)
        ],
        ngrams=largest_weights(texts, scores, predictor.predict_text) if with_ngrams else [],
    )


def roc_curve(labels: np.ndarray, scores: np.ndarray) -> list[tuple[float, float, float]]:
    """Return points (false positive rate, true positive rate, threshold) from (0, 0) to (1, 1).

    Args:
      labels: 0 or 1, of shape [reviews].
      scores: probabilities, of the same shape.
    """
    order = np.argsort(-scores, kind="stable")
    ranked, thresholds = labels[order], scores[order]
    # Reviews with the same score are on the same side of every threshold.
    ends = np.flatnonzero(np.append(np.diff(thresholds) != 0, True))
    true, false = np.cumsum(ranked)[ends], np.cumsum(1 - ranked)[ends]
    rates = zip(false / max(1, false[-1]), true / max(1, true[-1]), thresholds[ends], strict=True)
    points = [(0.0, 0.0, 1.0), *((float(x), float(y), float(t)) for x, y, t in rates)]
    step = max(1, len(points) // _CURVE_POINTS)
    return [*points[:-1:step], points[-1]]


def worst_mistakes(labels: np.ndarray, scores: np.ndarray) -> list[int]:
    """Return the places of the mistakes, the most confident first."""
    wrong = np.flatnonzero((scores > THRESHOLD) != labels)
    confidence = np.abs(scores[wrong] - THRESHOLD)
    return wrong[np.argsort(-confidence, kind="stable")][:MISTAKES].tolist()


def _probabilities(predictor: Predictor, texts: Sequence[bytes]) -> np.ndarray:
    """Return the probability of each text being positive, of shape [texts]."""
    batches = (texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH))
    return np.array([each.probability for batch in batches for each in predictor.predict(batch)])


def _confusion(labels: np.ndarray, scores: np.ndarray) -> list[list[int]]:
    predicted = (scores > THRESHOLD).astype(np.int64)
    return np.bincount(2 * labels + predicted, minlength=4).reshape(2, 2).tolist()


def _calibration(labels: np.ndarray, scores: np.ndarray) -> list[Bin]:
    place = np.minimum((scores * _BINS).astype(int), _BINS - 1)
    return [
        Bin(float(scores[here].mean()), float(labels[here].mean()), int(here.sum()))
        for here in (place == number for number in range(_BINS))
        if here.any()
    ]


def _mistake(text: bytes, label: int, predictor: Predictor, with_ngrams: bool) -> Mistake:
    shown = text.decode("utf-8", "replace")[:_LONGEST_TEXT]
    [prediction] = predictor.predict([text])
    probabilities = [each.probability for each in predictor.predict(variants(shown))]
    return Mistake(
        text=shown,
        label=int(label),
        probability=prediction.probability,
        parts=parts(shown, probabilities),
        ngrams=contributions(shown.encode(), predictor.predict_text) if with_ngrams else [],
    )
