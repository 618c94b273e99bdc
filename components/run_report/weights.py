"""The n-grams that matter most to a model that sums their weights, in general and in a review."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from preprocessing.fast.ngrams import NgramIds, ngram_ids, words
from serving.explain import logit
from serving.predict_text import PredictText
from trainer_module.export import THRESHOLD

_MOST_FREQUENT = 3000
_SHOWN = 20
_SHOWN_OF_A_REVIEW = 5
_BATCH = 1024


def largest_weights(
    texts: Sequence[bytes], scores: np.ndarray, predict: PredictText
) -> list[tuple[str, float]]:
    """Return the words and pairs of words with the largest weights among the frequent ones.

    The weight of an n-gram is the change of a review's logit if the n-gram is added to the n-grams
    of the review. The review is the one whose probability is nearest to 0.5: there the weight does
    not contain the effect of a greater length.

    Args:
      texts: reviews in UTF-8, at least one.
      scores: their probabilities, of shape [texts].
      predict: the model.

    Returns:
      (text, weight), the most negative first; nothing for a model without `predict_ngrams`.
    """
    if not predict.is_fast:
        return []
    longest, buckets, _ = predict.ngram_settings
    counts = Counter(gram for text in texts for gram in _grams(text) if len(gram) <= longest)
    frequent = [b" ".join(gram) for gram, _ in counts.most_common(_MOST_FREQUENT)]
    # The last id of a text is that of its longest n-gram.
    found = ngram_ids(frequent, longest, buckets)
    added = found.ids[np.cumsum(found.row_lengths) - 1]
    undecided = texts[int(np.argmin(np.abs(scores - THRESHOLD)))]
    base = ngram_ids([undecided], *predict.ngram_settings).ids
    [before] = _logits(predict, [base])
    weights = [
        after - before
        for start in range(0, len(added), _BATCH)
        for after in _logits(
            predict, [np.append(base, one) for one in added[start : start + _BATCH]]
        )
    ]
    names = [gram.decode("utf-8", "replace") for gram in frequent]
    ranked = sorted(zip(names, weights, strict=True), key=lambda item: item[1])
    half = min(_SHOWN // 2, len(ranked) // 2)
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
    ids = ngram_ids([text], *predict.ngram_settings).ids
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for place, gram in enumerate(_grams_by_id(words(text), predict)):
        places[gram].append(place)
    grams = list(places)
    [whole] = _logits(predict, [ids])
    effects = [
        whole - rest
        for start in range(0, len(grams), _BATCH)
        for rest in _logits(
            predict, [np.delete(ids, places[gram]) for gram in grams[start : start + _BATCH]]
        )
    ]
    names = [gram.decode("utf-8", "replace") for gram in grams]
    ranked = sorted(zip(names, effects, strict=True), key=lambda item: -abs(item[1]))
    return ranked[:_SHOWN_OF_A_REVIEW]


def _grams_by_id(words: Sequence[bytes], predict: PredictText) -> Iterator[bytes]:
    """Yield the n-grams of a review in the order of their ids in `NgramIds`."""
    longest, _, openings = predict.ngram_settings
    for run in (*(words[:size] for size in openings), words):
        for length in range(1, longest + 1):
            for start in range(len(run) - length + 1):
                yield b" ".join(run[start : start + length])


def _grams(text: bytes) -> Iterator[tuple[bytes, ...]]:
    plain = text.lower().split()
    yield from ((word,) for word in plain if word.isalnum())
    for pair in pairwise(plain):
        if pair[0].isalnum() and pair[1].isalnum():
            yield pair


def _logits(predict: PredictText, rows: Sequence[np.ndarray]) -> list[float]:
    """Return the logit of each review, given the ids of its n-grams."""
    if not rows:
        return []
    lengths = np.array([len(ids) for ids in rows], np.int64)
    outputs = predict.from_ngrams(NgramIds(np.concatenate(rows), lengths))
    return [logit(probability) for probability in outputs["probability"].tolist()]
