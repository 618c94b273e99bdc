"""The n-grams with the largest weights in a model that sums the weights of n-grams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from preprocessing.fast.ngrams import NgramIds, ngram_ids
from serving.explain import logit
from serving.predict_text import PredictText
from trainer_module.export import THRESHOLD

_MOST_FREQUENT = 3000
_SHOWN = 20
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
    [before] = _logits(predict, base[np.newaxis])
    weights = [
        after - before
        for start in range(0, len(added), _BATCH)
        for after in _logits(predict, _with_one_more(base, added[start : start + _BATCH]))
    ]
    names = [gram.decode("utf-8", "replace") for gram in frequent]
    ranked = sorted(zip(names, weights, strict=True), key=lambda item: item[1])
    half = min(_SHOWN // 2, len(ranked) // 2)
    return [*ranked[:half], *ranked[len(ranked) - half :]]


def _grams(text: bytes) -> Iterator[tuple[bytes, ...]]:
    words = text.lower().split()
    yield from ((word,) for word in words if word.isalnum())
    for pair in pairwise(words):
        if pair[0].isalnum() and pair[1].isalnum():
            yield pair


def _with_one_more(base: np.ndarray, added: np.ndarray) -> np.ndarray:
    return np.column_stack([np.tile(base, (len(added), 1)), added])


def _logits(predict: PredictText, ids: np.ndarray) -> list[float]:
    """Return the logit of each row of n-gram ids, which have shape [batch, n-grams]."""
    rows, width = ids.shape
    outputs = predict.from_ngrams(NgramIds(ids.reshape(-1), np.full(rows, width)))
    return [logit(probability) for probability in outputs["probability"].tolist()]
