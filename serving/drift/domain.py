"""A classifier that separates new texts from old ones by their words.

It is ridge regression on the n-grams of words. Its cross-validated predictions are linear in the
labels "old" and "new", so a permutation test needs one inversion of a matrix.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csr_matrix
from scipy.stats import norm

from preprocessing.scripts import SYLLABLE, separate_syllables

# In Python, `\w` does not include the vowels and tones of Thai and similar writing systems.
_WORD = re.compile(rf"{SYLLABLE}|[\w']+|[^\w\s]+")
_LONGEST = 2
_FOLDS = 5
_RIDGE = 1.0
_PERMUTATIONS = 499
_DENSE = 0.01
"""The share of texts from which on the column of an n-gram is multiplied as a dense one."""
_SHOWN = 5
"""Maximum number of n-grams of the new texts, and of the old ones."""
_LEAST_Z = 4.0
"""Least z-score of a shown n-gram. Among 50,000 n-grams without a change, about three exceed it."""
_LEAST_TEXTS = 5
"""Least number of texts with a shown n-gram."""
_HAS_LETTER = re.compile(r"\w")


class NgramShare(NamedTuple):
    """An n-gram whose frequency differs.

    Attributes:
      ngram: its words in lower case.
      old: the share of old texts that contain it.
      new: the share of new texts.
    """

    ngram: str
    old: float
    new: float


class Domain(NamedTuple):
    """The result of the classifier.

    Attributes:
      auc: the cross-validated area under the ROC curve: 0.5 if the texts are alike.
      interval: its 95 % confidence interval.
      p_value: the probability of at least this AUC if nothing has changed.
      ngrams: the n-grams whose frequencies differ most, those of the new texts first.
    """

    auc: float
    interval: tuple[float, float]
    p_value: float
    ngrams: tuple[NgramShare, ...]


class NgramMatrix(NamedTuple):
    """Texts by n-grams.

    Attributes:
      counts: 1 for each n-gram of a text, float32 [texts, n-grams].
      names: the n-grams.
    """

    counts: csr_matrix
    names: list[str]


def compare_texts(old: Sequence[bytes], new: Sequence[bytes], seed: int = 0) -> Domain:
    """Return how well a classifier separates new texts from old ones.

    The classifier two-sample test of Lopez-Paz and Oquab (2017) with a permutation test, which is
    exact for any number of texts. The interval is that of LeDell, Petersen and van der Laan (2015)
    for a cross-validated AUC.

    Args:
      old: texts in UTF-8, two or more.
      new: texts in UTF-8, two or more.
      seed: determines the folds and the permutations.
    """
    matrix = ngram_matrix([*old, *new])
    is_new = np.arange(len(old) + len(new)) >= len(old)
    return compare_rows(matrix, is_new, seed)


def compare_rows(matrix: NgramMatrix, is_new: np.ndarray, seed: int) -> Domain:
    """Return the result for rows of a matrix, see `compare_texts`.

    Args:
      matrix: the n-grams of all texts. N-grams of one text have no effect.
      is_new: bool [texts].
      seed: see `compare_texts`.
    """
    random = np.random.default_rng(seed)
    features = _features(matrix.counts)
    targets = np.empty((len(is_new), _PERMUTATIONS + 1), np.float32)
    targets[:, 0] = is_new
    for number in range(1, _PERMUTATIONS + 1):
        targets[:, number] = random.permutation(is_new)
    folds = np.array_split(random.permutation(len(is_new)), _FOLDS)
    predicted = _cross_validated(features, targets - is_new.mean(), folds)
    aucs = _aucs(predicted, targets > 0, folds)
    auc = float(aucs[0])
    deviation = _deviation(predicted[:, 0], is_new, folds)
    width = float(norm.ppf(0.975)) * deviation
    p_value = (1 + np.count_nonzero(aucs[1:] >= auc)) / (1 + _PERMUTATIONS)
    return Domain(
        auc, (max(0.0, auc - width), min(1.0, auc + width)), p_value, _ngrams(matrix, is_new)
    )


def ngram_matrix(texts: Sequence[bytes]) -> NgramMatrix:
    """Return the n-grams of one and two words of each text.

    Args:
      texts: texts in UTF-8.
    """
    index: dict[str, int] = {}
    columns: list[int] = []
    ends = [0]
    for text in texts:
        lowered = text.decode("utf-8", "replace").lower()
        words = _WORD.findall(separate_syllables(lowered))
        grams = set(words)
        for length in range(2, _LONGEST + 1):
            shifted = (words[n:] for n in range(length))
            grams |= {" ".join(found) for found in zip(*shifted, strict=False)}
        columns += [index.setdefault(gram, len(index)) for gram in sorted(grams)]
        ends.append(len(columns))
    shape = len(texts), len(index)
    ones = np.ones(len(columns), np.float32)
    return NgramMatrix(csr_matrix((ones, columns, ends), shape), list(index))


def _features(counts: csr_matrix) -> np.ndarray:
    """Return the products of all pairs of texts, float32 [texts, texts].

    A text is a vector of unit length with the inverse document frequency of its n-grams.
    """
    number = counts.shape[0]
    frequency = np.asarray(counts.sum(axis=0)).ravel()
    kept = counts[:, frequency > 1]
    frequency = frequency[frequency > 1]
    weights = kept.multiply(np.log((1 + number) / (1 + frequency))).tocsr().astype(np.float32)
    norms = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
    weights = weights.multiply(1 / np.maximum(norms, 1e-9)[:, None]).tocsr()
    is_dense = frequency > _DENSE * number
    dense = weights[:, is_dense].toarray()
    rare = weights[:, ~is_dense]
    products: np.ndarray = dense @ dense.T
    products += (rare @ rare.T).toarray()
    return products


def _cross_validated(
    products: np.ndarray, targets: np.ndarray, folds: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the predictions of ridge regression for each fold, trained on the others.

    For a fold f, they are `y_f - (G_ff)^-1 (G y)_f`, where G is the inverse of the regularised
    products of all texts.

    Args:
      products: float32 [texts, texts].
      targets: a column for each regression, float32 [texts, regressions].
      folds: the rows of each fold.
    """
    regularised = products + _RIDGE * np.eye(len(products), dtype=np.float32)
    # The matrix is symmetric, so LAPACK computes one triangle of its inverse, three times as fast.
    factor, _ = lapack.spotrf(regularised, lower=1)
    triangle, _ = lapack.spotri(factor, lower=1)
    inverse = np.tril(triangle) + np.tril(triangle, -1).T
    smoothed = inverse @ targets
    predicted = np.empty_like(targets)
    for fold in folds:
        residual = np.linalg.solve(inverse[np.ix_(fold, fold)], smoothed[fold])
        predicted[fold] = targets[fold] - residual
    return predicted


def _aucs(
    predicted: np.ndarray, is_positive: np.ndarray, folds: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the mean AUC of the folds, weighted by their numbers of pairs, float64 [columns]."""
    above, pairs = np.zeros(predicted.shape[1]), np.zeros(predicted.shape[1])
    for fold in folds:
        positive = is_positive[fold]
        number = positive.sum(axis=0)
        # Equal texts have equal predictions. Their order is that of the fold, which is random.
        order = np.argsort(predicted[fold], axis=0, kind="stable")
        ranks = np.arange(1, len(fold) + 1) @ np.take_along_axis(positive, order, axis=0)
        above += ranks - number * (number + 1) / 2
        pairs += number * (len(fold) - number)
    return np.divide(above, pairs, out=np.full_like(above, 0.5), where=pairs > 0)


def _deviation(predicted: np.ndarray, is_new: np.ndarray, folds: Sequence[np.ndarray]) -> float:
    """Return the standard error of the AUC from its influence curve, see `compare_texts`."""
    total = 0.0
    share = is_new.mean()
    for fold in folds:
        positive, negative = predicted[fold][is_new[fold]], predicted[fold][~is_new[fold]]
        if not len(positive) or not len(negative):
            continue
        below = np.searchsorted(np.sort(negative), positive) / len(negative)
        above = 1 - np.searchsorted(np.sort(positive), negative, "right") / len(positive)
        auc = below.mean()
        curve = np.sum((below - auc) ** 2) / share**2
        curve += np.sum((above - above.mean()) ** 2) / (1 - share) ** 2
        total += float(curve)
    return math.sqrt(total) / len(predicted)


def _ngrams(matrix: NgramMatrix, is_new: np.ndarray) -> tuple[NgramShare, ...]:
    """Return the n-grams with the highest and lowest z-scores of the difference of two shares.

    Of n-grams that are in the same texts, such as the two words of a name, only one is returned.
    """
    new_counts = np.asarray(matrix.counts[is_new].sum(axis=0)).ravel()
    old_counts = np.asarray(matrix.counts[~is_new].sum(axis=0)).ravel()
    news, olds = int(is_new.sum()), int((~is_new).sum())
    share = (new_counts + old_counts + 1) / (news + olds + 2)
    scores = new_counts / news - old_counts / olds
    scores /= np.sqrt(share * (1 - share) * (1 / news + 1 / olds))
    found: list[NgramShare] = []
    order = np.argsort(-scores, kind="stable")
    for indices in (order, order[::-1]):
        seen: Counter[tuple[float, float]] = Counter()
        for n in indices[: 10 * _SHOWN].tolist():
            if abs(scores[n]) < _LEAST_Z or len(seen) == _SHOWN:
                break
            is_frequent = new_counts[n] + old_counts[n] >= _LEAST_TEXTS
            if not is_frequent or not _HAS_LETTER.search(matrix.names[n]):
                continue
            shares = float(old_counts[n] / olds), float(new_counts[n] / news)
            seen[shares] += 1
            if seen[shares] == 1:
                found.append(NgramShare(matrix.names[n], *shares))
    return tuple(found)
