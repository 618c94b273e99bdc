"""The figures of new reviews against the reference of a model, the alarms and the advice."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from core.intervals import wilson
from core.records import known_fields
from preprocessing.features import UNDECIDED
from preprocessing.labels import Labels
from preprocessing.reading.listing import short
from serving.drift.accuracy import Estimate, estimate_accuracy
from serving.drift.domain import NgramShare, compare_texts
from serving.drift.reference import LEAST_REVIEWS, UNLABELLED, ScoredReviews
from serving.drift.shares import (
    alarms,
    drop_p_value,
    label_p_value,
    score_distance,
    share_p_value,
)

FALSE_ALARMS = 0.05
"""The probability of any false alarm of a comparison, all tests together."""
_ROUNDING = 1e-9
Severity = Literal["none", "low", "high"]
SCORES, WORDS, UNSURE = "scores", "words", "unsure"
ACCURACY, LABELS, ESTIMATE = "accuracy", "labels", "estimate"
"""The names of the figures."""
_SHARES = (SCORES, UNSURE, LABELS)
"""The figures that a person reads as percentages."""


@dataclass(frozen=True)
class Figure:
    """A figure of the comparison.

    Attributes:
      name: SCORES, WORDS, UNSURE, ACCURACY, LABELS or ESTIMATE.
      value: its value for the new reviews.
      interval: the 95 % confidence interval of the value.
      reference: the value for the reference; None for a figure that compares both.
      p_value: that of its test; None for the estimate, which is not tested.
      sentence: the figure in a sentence.
      is_alarm: whether the test is significant, corrected for the number of tests.
    """

    name: str
    value: float
    interval: tuple[float, float]
    reference: float | None
    p_value: float | None
    sentence: str
    is_alarm: bool = False

    @property
    def interval_texts(self) -> tuple[str, str]:
        """The ends of the interval in the unit of the sentence, such as `0.9598` and `0.9806`."""
        low, high = self.interval
        if self.name in _SHARES:
            return f"{low:.1%}", f"{high:.1%}"
        return f"{low:.4f}", f"{high:.4f}"

    @property
    def p_text(self) -> str:
        """The p-value, such as `p = 0.034`; empty if the figure is not tested."""
        if self.p_value is None:
            return ""
        return "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"


@dataclass(frozen=True)
class Comparison:
    """New reviews against the reference of a model.

    Attributes:
      reviews: the number of new reviews that were compared.
      reference_reviews: the number of reviews of the reference.
      figures: the figures; those of labels only if the new reviews have some.
      ngrams: the n-grams whose frequencies differ, see `Domain`; empty without an alarm of WORDS.
      severity: `none` without an alarm; `high` if the accuracy has dropped significantly and by
        more than the settings allow, or without labels is estimated to have dropped by more;
        otherwise `low`.
      advice: what to do, in a sentence.
    """

    reviews: int
    reference_reviews: int
    figures: tuple[Figure, ...]
    ngrams: tuple[NgramShare, ...]
    severity: Severity
    advice: str

    @property
    def alarms(self) -> list[str]:
        """The names of the figures whose tests are significant."""
        return [figure.name for figure in self.figures if figure.is_alarm]

    @property
    def is_alarm(self) -> bool:
        """Whether any test is significant."""
        return bool(self.alarms)

    @property
    def sentence(self) -> str:
        """The result and what to do."""
        if not self.is_alarm:
            return f"no alarm: {self.advice}"
        return f"alarm of severity {self.severity} ({', '.join(self.alarms)}): {self.advice}"

    def to_json(self) -> dict[str, Any]:
        """Return the comparison in a form that JSON can represent."""
        # JSON has no named tuples.
        return {**asdict(self), "ngrams": [each._asdict() for each in self.ngrams]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Comparison:
        """Return the comparison that `to_json` converted.

        Args:
          stored: the result of `to_json`. Unknown keys of a figure or of the comparison, those of a
            later version, are ignored.

        Raises:
          ValueError: a key is missing, or the record is no object of this form.
        """
        try:
            figures = [
                Figure(**{**known_fields(Figure, each), "interval": tuple(each["interval"])})
                for each in stored["figures"]
            ]
            ngrams = [
                NgramShare(**{name: each[name] for name in NgramShare._fields})
                for each in stored["ngrams"]
            ]
            own = {**known_fields(cls, stored), "figures": tuple(figures), "ngrams": tuple(ngrams)}
            return cls(**own)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the comparison is incomplete: {error}") from None


@dataclass(frozen=True)
class NotCompared:
    """New reviews that were not compared.

    Attributes:
      reason: why, as a clause.
    """

    reason: str

    @property
    def sentence(self) -> str:
        """The reason in the form of `Comparison.sentence`."""
        return f"not compared: {self.reason}"


def compare(
    reference: ScoredReviews,
    new: ScoredReviews,
    classes: Labels,
    allowed_drop: float,
) -> Comparison:
    """Compare new reviews with the reference of the model that scored both.

    Args:
      reference: the reference, at least `reference.LEAST_REVIEWS` reviews with labels.
      new: as many new reviews at least. Their accuracy and their labels are compared if as many
        of them have labels.
      classes: the classes of the model.
      allowed_drop: the greatest drop of the accuracy that is no high severity.
    """
    assert reference.labels is not None
    domain = compare_texts(reference.texts, new.texts)
    estimate = estimate_accuracy(reference.scores, reference.labels, new.scores, classes)
    nouns = classes.nouns
    words = Figure(
        WORDS,
        domain.auc,
        domain.interval,
        None,
        domain.p_value,
        f"a classifier of words separates new {nouns} from old ones with the AUC {domain.auc:.3f}, "
        "where 0.5 is chance",
    )
    found = [_scores(reference, new, classes), words, _unsure(reference, new, classes)]
    right = _right(reference, classes)
    labelled = _labelled(new)
    if labelled is not None:
        found += [_accuracy(reference, labelled, classes), _labels(reference, labelled, classes)]
    found.append(_estimated(estimate, right / len(reference)))
    tested = {each.name: each.p_value for each in found if each.p_value is not None}
    significant = alarms(tested, FALSE_ALARMS)
    figures = tuple(replace(each, is_alarm=each.name in significant) for each in found)
    severity, advice = _advice(figures, allowed_drop, nouns)
    ngrams = domain.ngrams if WORDS in significant else ()
    return Comparison(len(new), len(reference), figures, ngrams, severity, advice)


def _labelled(new: ScoredReviews) -> ScoredReviews | None:
    """Return the reviews with labels; None if they are fewer than LEAST_REVIEWS."""
    if new.labels is None:
        return None
    here = np.flatnonzero(new.labels != UNLABELLED)
    if len(here) < LEAST_REVIEWS:
        return None
    return ScoredReviews(new.scores[here], (), new.labels[here], new.span)


def _scores(reference: ScoredReviews, new: ScoredReviews, classes: Labels) -> Figure:
    distance = score_distance(reference.scores, new.scores, classes)
    name = short(classes.names[distance.label])
    return Figure(
        SCORES,
        distance.value,
        distance.interval,
        None,
        distance.p_value,
        f"the Kolmogorov-Smirnov distance of the probabilities of {name} is {distance.value:.1%}",
    )


def _unsure(reference: ScoredReviews, new: ScoredReviews, classes: Labels) -> Figure:
    old, found = (
        (int(np.count_nonzero(classes.by_class(each.scores).max(axis=1) < UNDECIDED)), len(each))
        for each in (reference, new)
    )
    before, now = old[0] / old[1], found[0] / found[1]
    return Figure(
        UNSURE,
        now,
        wilson(*found),
        before,
        share_p_value(old, found),
        f"{now:.1%} of the answers have a probability below {UNDECIDED:g}, before {before:.1%}",
    )


def _accuracy(reference: ScoredReviews, new: ScoredReviews, classes: Labels) -> Figure:
    old = _right(reference, classes), len(reference)
    found = _right(new, classes), len(new)
    before, now = old[0] / old[1], found[0] / found[1]
    sentence = f"the accuracy is {now:.4f}, before {before:.4f}"
    return Figure(ACCURACY, now, wilson(*found), before, drop_p_value(old, found), sentence)


def _labels(reference: ScoredReviews, new: ScoredReviews, classes: Labels) -> Figure:
    # The last number is that of the labels that are no class of the model.
    old, found = (
        np.bincount(np.asarray(each.labels), minlength=classes.number + 1)
        for each in (reference, new)
    )
    change = found / found.sum() - old / old.sum()
    most = 1 if classes.is_binary else int(np.abs(change).argmax())
    if found[-1]:
        most = classes.number
    count, total = int(found[most]), int(found.sum())
    before = float(old[most] / old.sum())
    name = "no class of the model" if most == classes.number else short(classes.names[most])
    return Figure(
        LABELS,
        count / total,
        wilson(count, total),
        before,
        label_p_value(old, found),
        f"{count / total:.1%} of the labels are {name}, before {before:.1%}",
    )


def _estimated(estimate: Estimate, before: float) -> Figure:
    sentence = (
        f"the accuracy is estimated without labels as {estimate.value:.4f}, before it was "
        f"{before:.4f}"
    )
    return Figure(ESTIMATE, estimate.value, estimate.interval, before, None, sentence)


def _right(reviews: ScoredReviews, classes: Labels) -> int:
    return int(np.count_nonzero(classes.decide(reviews.scores) == reviews.labels))


def _advice(figures: tuple[Figure, ...], allowed_drop: float, nouns: str) -> tuple[Severity, str]:
    """Return the severity, and what to do."""
    by_name = {figure.name: figure for figure in figures}
    alarming = {figure.name for figure in figures if figure.is_alarm}
    if not alarming:
        return (
            "none",
            f"no sign that the model no longer fits; nothing has to be done for these {nouns}",
        )
    judged = by_name.get(ACCURACY, by_name[ESTIMATE])
    assert judged.reference is not None
    # The difference of two quotients may miss a threshold by a bit.
    dropped = judged.reference - judged.value > allowed_drop + _ROUNDING
    if ACCURACY in by_name:
        # A small sample may have any accuracy by chance.
        return _advice_by_labels(alarming, dropped and judged.is_alarm, nouns)
    if dropped:
        return (
            "high",
            f"label some hundred of these {nouns}, measure the accuracy with them, and retrain",
        )
    return "low", f"label some hundred of these {nouns} to measure the accuracy"


def _advice_by_labels(alarming: Set[str], dropped: bool, nouns: str) -> tuple[Severity, str]:
    """Return the severity, and what to do, for new reviews with labels.

    Args:
      alarming: the names of the figures that are an alarm.
      dropped: whether the accuracy dropped by more than the settings allow.
      nouns: the word for texts.
    """
    # If the texts are as before, the labels are what has changed.
    only_labels = not alarming & {SCORES, WORDS, UNSURE}
    if dropped and only_labels:
        return "high", f"check the labels of these {nouns}, and retrain if they are right"
    if dropped:
        return "high", f"retrain with these {nouns}"
    if ACCURACY not in alarming:
        return "low", f"no significant drop of the accuracy; add these {nouns} to the next training"
    found = "the accuracy dropped by no more than evaluation.max_accuracy_drop allows"
    if only_labels:
        remedy = f"check the labels of these {nouns}, and add them to the next training"
        return "low", f"{found}; {remedy} if they are right"
    return "low", f"{found}; add these {nouns} to the next training"
