"""Explain the most confident mistakes of a model, and the weights of a model of n-grams."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tfx.utils import path_utils

from components.evaluator.files import read_mistakes
from components.examples import read_sample
from preprocessing import features
from preprocessing.fast.ngrams import NgramIds, ngram_ids, words
from preprocessing.features import THRESHOLD
from serving.explain import Part, logit, parts, variants
from serving.predict_text import PredictText
from serving.predictor import Predictor

_MAX_REVIEWS = 20_000
"""Maximum number of test reviews whose n-grams are counted. This takes a second or two."""
_MAX_FREQUENT = 3000
_SHOWN = 20
_SHOWN_OF_A_REVIEW = 5
_FIRST = 1024


class Mistake(NamedTuple):
    """A review that the model gets wrong.

    Attributes:
      text, label, probability: see `components.evaluator.files.MISTAKES_FILE`.
      parts: the parts of the text, with the effects of its first words.
      ngrams: (n-gram, its contribution), the largest first, if the model is a sum over n-grams.
    """

    text: str
    label: int
    probability: float
    parts: list[Part]
    ngrams: list[tuple[str, float]] = []


class Explanations(NamedTuple):
    """Why the model predicts what it predicts.

    Attributes:
      mistakes: the mistakes with the highest confidence.
      ngrams: (text, weight) of frequent words and pairs of words, the most negative first.
    """

    mistakes: list[Mistake]
    ngrams: list[tuple[str, float]]


def explain(evaluation: str, examples: str, model: str, *, with_ngrams: bool) -> Explanations:
    """Explain the mistakes that the Evaluator stored.

    Args:
      evaluation: URI of the evaluation.
      examples: URI of the raw Examples.
      model: URI of the model.
      with_ngrams: whether the model is a sum over n-grams, so that an n-gram has a weight.
    """
    predictor = Predictor(path_utils.serving_model_path(model))
    predict = predictor.predict_text
    mistakes = []
    for stored in read_mistakes(evaluation):
        text = stored["text"]
        probabilities = [each.probability for each in predictor.predict(variants(text))]
        ngrams = contributions(text.encode(), predict) if with_ngrams else []
        mistakes.append(Mistake(**stored, parts=parts(text, probabilities), ngrams=ngrams))
    weights = []
    if with_ngrams:
        sample = read_sample(os.path.join(examples, "Split-test"), _MAX_REVIEWS)
        spec = {features.TEXT: tf.io.FixedLenFeature([], tf.string)}
        texts = tf.io.parse_example(sample.examples, spec)[features.TEXT].numpy().tolist()
        weights = largest_weights(texts, predict)
    return Explanations(mistakes, weights)


def largest_weights(texts: Sequence[bytes], predict: PredictText) -> list[tuple[str, float]]:
    """Return the words and pairs of words with the largest weights among the frequent ones.

    The weight of an n-gram is the change of a review's logit if the n-gram is added to the n-grams
    of the review. Of the first reviews, the review is the one whose probability is nearest to 0.5:
    there the weight does not contain the effect of a greater length.

    Args:
      texts: reviews in UTF-8.
      predict: the model.

    Returns:
      (text, weight), the most negative first; nothing for a model without `predict_ngrams`.
    """
    if not predict.is_fast or not texts:
        return []
    longest, buckets, _ = predict.ngram_settings
    counts = Counter(
        gram
        for text in texts
        for gram in _grams(words(text), min(longest, 2))
        if gram.replace(b" ", b"").isalnum()
    )
    frequent = [gram for gram, _ in counts.most_common(_MAX_FREQUENT)]
    # The last id of a text is that of its longest n-gram.
    found = ngram_ids(frequent, longest, buckets)
    added = found.ids[np.cumsum(found.row_lengths) - 1]
    first = texts[:_FIRST]
    scores = predict.from_ngrams(ngram_ids(first, *predict.ngram_settings))["probability"]
    undecided = first[int(np.argmin(np.abs(scores - THRESHOLD)))]
    base = ngram_ids([undecided], *predict.ngram_settings).ids
    before, *logits = _logits(predict, [base, *(np.append(base, one) for one in added)])
    ranked = sorted(_named(frequent, (after - before for after in logits)), key=itemgetter(1))
    half = min(_SHOWN, len(ranked)) // 2
    return [*ranked[:half], *ranked[len(ranked) - half :]]


def contributions(text: bytes, predict: PredictText) -> list[tuple[str, float]]:
    """Return the n-grams with the largest contributions to the prediction for a review.

    The contribution of an n-gram is the logit of the review minus the logit without the n-gram,
    wherever it occurs in the review.

    Args:
      text: the review in UTF-8.
      predict: the model.

    Returns:
      (text, contribution), the largest first; nothing for a model without `predict_ngrams`.
    """
    if not predict.is_fast:
        return []
    longest, _, openings = predict.ngram_settings
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for place, gram in enumerate(_grams(words(text), longest, openings)):
        places[gram].append(place)
    ids = ngram_ids([text], *predict.ngram_settings).ids
    whole, *rests = _logits(predict, [ids, *(np.delete(ids, where) for where in places.values())])
    effects = _named(places, (whole - rest for rest in rests))
    return sorted(effects, key=lambda item: -abs(item[1]))[:_SHOWN_OF_A_REVIEW]


def _grams(words: Sequence[bytes], longest: int, openings: Sequence[int] = ()) -> Iterator[bytes]:
    """Yield the n-grams of a review in the order of their ids in `NgramIds`."""
    for run in (*(words[:size] for size in openings), words):
        for length in range(1, longest + 1):
            for start in range(len(run) - length + 1):
                yield b" ".join(run[start : start + length])


def _named(grams: Iterable[bytes], effects: Iterable[float]) -> list[tuple[str, float]]:
    names = (gram.decode("utf-8", "replace") for gram in grams)
    return list(zip(names, effects, strict=True))


def _logits(predict: PredictText, rows: Sequence[np.ndarray]) -> list[float]:
    """Return the logit of each review, given the ids of its n-grams."""
    lengths = np.array([len(ids) for ids in rows], np.int64)
    outputs = predict.from_ngrams(NgramIds(np.concatenate(rows), lengths))
    return [logit(probability) for probability in outputs["probability"].tolist()]
