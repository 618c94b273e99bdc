"""The scores of a part of the test split, which are merged: counts, a sample, and mistakes."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from components.evaluator.counts import Counts
from components.evaluator.files import (
    CANDIDATE,
    WHOLE,
    Changed,
    ConfusedReviews,
    Slice,
    WrongAnswer,
)
from components.examples import SAMPLE_SIZE
from serving.drift import reference
from serving.drift.reference import HashedReviews

MISTAKES = 20
"""Number of mistakes of the candidate that are stored."""
REGRESSIONS = 20
"""Number of reviews that are stored of those that only the candidate gets wrong."""
CONFUSIONS, CONFUSION_TEXTS = 30, 3
"""Number of pairs of a label and another answer that are stored with texts, and their texts."""
_KEPT_CONFUSIONS = 2000
"""Number of pairs whose texts are kept while parts are merged, which limits the size of a part."""
_CONFUSION_CHARACTERS = 300
"""Maximum number of characters of such a text."""


class Mistake(NamedTuple):
    """A wrong answer of the candidate. Mistakes are sorted by confidence, and then by hash.

    Attributes:
      doubt: minus the confidence, which is the probability of the answer.
      hash: the hash of the Example.
      text: the beginning of the text.
      label: the label.
      predicted: the answer.
      probability: the probability of the answer; of two classes, that of the second one.
    """

    doubt: float
    hash: int
    text: str
    label: int
    predicted: int
    probability: float

    def stored(self) -> WrongAnswer:
        """Return the mistake as it is in the files of an evaluation."""
        return WrongAnswer(self.text, self.label, self.predicted, self.probability)


class ChangedAnswers(NamedTuple):
    """The reviews that exactly one of candidate and baseline gets right.

    Attributes:
      newly_wrong: the number of reviews that only the candidate gets wrong.
      newly_right: the number of reviews that only the baseline gets wrong.
      regressions: the REGRESSIONS most confident mistakes among those of `newly_wrong`, without
        copies.
    """

    newly_wrong: int
    newly_right: int
    regressions: list[Mistake]

    def stored(self) -> Changed:
        """Return the answers as they are in the files of an evaluation."""
        return Changed(
            self.newly_wrong,
            self.newly_right,
            [mistake.stored() for mistake in self.regressions],
        )


class Scores(NamedTuple):
    """The scores of some reviews. Their size does not grow with the number of reviews.

    Attributes:
      slices: slice -> CANDIDATE and, if there is one, BASELINE -> counts.
      sampled: (hash, digest, prediction) of the SAMPLE_SIZE Examples with the smallest hashes.
      mistakes: the MISTAKES most confident mistakes of the candidate, without copies.
      confusions: label and predicted label -> the CONFUSION_TEXTS most confident mistakes with
        different texts, of the most frequent confusions.
      changed: the answers that differ from those of the baseline; None without a baseline.
      reference: the reviews that a push keeps with the model; None without a review.
      served: the same reviews with the scores of the baseline; None without a baseline.
    """

    slices: dict[Slice, dict[str, Counts]]
    sampled: list[tuple[int, str, Any]]
    mistakes: list[Mistake]
    confusions: dict[tuple[int, int], list[Mistake]]
    changed: ChangedAnswers | None = None
    reference: HashedReviews | None = None
    served: HashedReviews | None = None


def merge(parts: Iterable[Scores]) -> Scores:
    """Return the scores of all reviews together.

    Args:
      parts: the scores of disjoint sets of reviews.
    """
    slices: dict[Slice, dict[str, Counts]] = {}
    parts = list(parts)
    for part in parts:
        for slice_key, models in part.slices.items():
            known = slices.setdefault(slice_key, {})
            for name, counts in models.items():
                known[name] = known[name] + counts if name in known else counts
    return Scores(
        slices,
        # Equal Examples have equal predictions, which may be objects without an order.
        heapq.nsmallest(
            SAMPLE_SIZE,
            chain.from_iterable(part.sampled for part in parts),
            key=lambda sampled: sampled[:2],
        ),
        most_confident(chain.from_iterable(part.mistakes for part in parts), MISTAKES),
        _merge_confusions(parts, slices),
        _merge_changed([part.changed for part in parts if part.changed is not None]),
        reference.merge(part.reference for part in parts if part.reference is not None),
        reference.merge(part.served for part in parts if part.served is not None),
    )


def confusion_texts(mistakes: Iterable[Mistake]) -> dict[tuple[int, int], list[Mistake]]:
    """Return label and predicted label -> the most confident mistakes, with the start of the text.

    Args:
      mistakes: all mistakes of some reviews.
    """
    found: dict[tuple[int, int], list[Mistake]] = {}
    for mistake in mistakes:
        pair = mistake.label, mistake.predicted
        start = mistake.text[:_CONFUSION_CHARACTERS]
        found.setdefault(pair, []).append(mistake._replace(text=start))
    return {pair: most_confident(texts, CONFUSION_TEXTS) for pair, texts in found.items()}


def most_confident(mistakes: Iterable[Mistake], most: int) -> list[Mistake]:
    """Return the most confident mistakes; of copies of a review, which repeat a mistake, one.

    Args:
      mistakes: mistakes in any order.
      most: the number of mistakes that are returned, if there are as many.
    """
    different: dict[tuple[str, int], Mistake] = {}
    for mistake in sorted(mistakes):
        different.setdefault((mistake.text, mistake.label), mistake)
    return list(different.values())[:most]


def confused_reviews(scores: Scores) -> ConfusedReviews:
    """Return reviews of the most frequent confusions, for the files of an evaluation."""
    found = scores.slices[WHOLE][CANDIDATE].confusions(CONFUSIONS)
    pairs = [(each.label, each.predicted) for each in found]
    return {
        pair: [mistake.stored() for mistake in scores.confusions.get(pair, [])] for pair in pairs
    }


def _merge_changed(parts: list[ChangedAnswers]) -> ChangedAnswers | None:
    if not parts:
        return None
    return ChangedAnswers(
        sum(part.newly_wrong for part in parts),
        sum(part.newly_right for part in parts),
        most_confident(chain.from_iterable(part.regressions for part in parts), REGRESSIONS),
    )


def _merge_confusions(
    parts: list[Scores], slices: dict[Slice, dict[str, Counts]]
) -> dict[tuple[int, int], list[Mistake]]:
    pairs = {pair for part in parts for pair in part.confusions}
    if len(pairs) > _KEPT_CONFUSIONS:
        # A confusion that is frequent in the end is frequent in most parts.
        found = slices[WHOLE][CANDIDATE].confusions(_KEPT_CONFUSIONS)
        pairs &= {(each.label, each.predicted) for each in found}
    return {
        pair: most_confident(
            chain.from_iterable(part.confusions.get(pair, []) for part in parts), CONFUSION_TEXTS
        )
        for pair in pairs
    }
