"""The thresholds of an evaluation: what blocks a model, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from components.evaluator.counts import Counts
from components.evaluator.metrics import ACCURACY, class_name, reviews_of_class
from components.evaluator.thresholds import Evaluation, check_names, rounded
from preprocessing.labels import Labels
from preprocessing.reading.listing import joined, listed, short


class Check(NamedTuple):
    """The result of a comparison with a threshold.

    Attributes:
      sentence: the metric, its value for the candidate on the test split, and the threshold.
      passed: whether the value reaches the threshold. A value that cannot be computed does not.
      margin: the distance of the value from the threshold; negative or NaN if it is not reached.
    """

    sentence: str
    passed: bool
    margin: float


def check_thresholds(
    own: Counts, base: Counts | None, labels: Labels, settings: Evaluation, known: str = ""
) -> list[Check]:
    """Compare the metrics of a candidate with the thresholds; return the result of each threshold.

    A value that is not defined does not reach a threshold. A minimum of 0 and a maximum drop of 1
    have no result, because every model reaches them.

    Args:
      own: the counts of the candidate on the test split.
      base: those of the baseline; None without one.
      labels: the classes of both.
      settings: the thresholds.
      known: why the baseline may have been trained on the test split, as a predicate; or empty.

    Raises:
      InputError: the minimum of a class is set that does not exist.
    """
    return [*_check_accuracy(own, base, settings, known), *_check_recalls(own, labels, settings)]


def deciding(checks: Sequence[Check]) -> list[str]:
    """Return the sentences of the thresholds that decided about the model.

    They are the thresholds that it did not reach. If it reached all of them, it is the one that it
    reached with the smallest margin. The list is empty if there are no thresholds.

    Args:
      checks: the result of `check_thresholds`.
    """
    missed = [check.sentence for check in checks if not check.passed]
    if missed or not checks:
        return missed
    return [min(checks, key=lambda check: check.margin).sentence]


def missing_classes(own: Counts, labels: Labels) -> list[str]:
    """Return the names of the classes without a review in the test split."""
    return [labels.names[label] for label in np.flatnonzero(own.labelled == 0).tolist()]


def _check_accuracy(
    own: Counts, base: Counts | None, settings: Evaluation, known: str
) -> Iterator[Check]:
    value = ACCURACY.value(own)
    minimum = settings.min_accuracy
    if minimum > 0:
        shown = rounded(value, lambda each: each >= minimum)
        sentence = f"accuracy is {shown}, evaluation.min_accuracy requires {minimum:g}"
        yield Check(sentence, value >= minimum, value - minimum)
    drop = settings.max_accuracy_drop
    if drop < 1 and base is not None:
        # One quotient, because the difference of two rounded ones may miss a threshold by a bit.
        newly_right = int(own.right.sum()) - int(base.right.sum())
        change = newly_right / own.examples if own.examples else math.nan
        shown = rounded(abs(change), lambda each: change >= 0 or each <= drop)
        differs = f"is {shown} {'below' if change < 0 else 'above'}"
        sentence = (
            f"accuracy {differs if newly_right else 'equals'} that of the baseline, "
            f"evaluation.max_accuracy_drop allows {drop:g}"
        )
        if known and not change >= -drop:
            sentence += (
                f"; the baseline {known}, and may have been trained on the test split: if so, set "
                "evaluation.max_accuracy_drop: 1 for this run"
            )
        yield Check(sentence, change >= -drop, change + drop)


def _check_recalls(own: Counts, labels: Labels, settings: Evaluation) -> Iterator[Check]:
    """Yield the results of the minimum recalls: of each class, or of many classes together."""
    minimum = settings.min_class_recall
    if isinstance(minimum, Mapping):
        check_names("evaluation.min_class_recall", minimum, labels.names)
        minimums = {labels.names.index(name): value for name, value in minimum.items()}
    elif labels.is_binary:
        minimums = dict.fromkeys(range(labels.number), minimum)
    else:
        yield from _check_all_recalls(own, labels, minimum)
        return
    for label, required in minimums.items():
        if required > 0:
            yield _check_recall(own, labels, label, required)


def _check_recall(own: Counts, labels: Labels, label: int, minimum: float) -> Check:
    right, reviews = int(own.right[label]), int(own.labelled[label])
    name = class_name(labels, label)
    requires = f"evaluation.min_class_recall requires {minimum:g}"
    if not reviews:
        return Check(_not_checked([labels.names[label]], labels, requires), False, math.nan)
    recall = right / reviews
    shown = rounded(recall, lambda each: each >= minimum)
    sentence = f"recall of {name} is {shown} ({right:,} of {reviews:,}), {requires}"
    margin = recall - minimum
    if recall >= minimum:
        return Check(sentence, True, margin)
    return Check(f"{sentence}; {_remedy(reviews_of_class(labels, label))}", False, margin)


def _check_all_recalls(own: Counts, labels: Labels, minimum: float) -> Iterator[Check]:
    """Yield a result for the classes in the test split, and one for the classes without reviews."""
    if minimum <= 0:
        return
    requires = f"evaluation.min_class_recall requires {minimum:g}"
    found = np.flatnonzero(own.labelled)
    recalls = own.right[found] / own.labelled[found]
    order = np.argsort(recalls, kind="stable")
    low = int(np.count_nonzero(recalls < minimum))
    described = []
    for n in order[: max(low, 1)].tolist():
        recall = rounded(recalls[n], lambda each: each >= minimum)
        share = f"{own.right[found[n]]:,} of {own.labelled[found[n]]:,}"
        described.append(f"{short(labels.names[found[n]])} ({recall}, {share})")
    if low:
        yield Check(
            f"recall of {low:,} of {labels.number:,} classes is too low: {joined(described)}, "
            f"{requires}; {_remedy(f'{labels.nouns} of these classes')}",
            False,
            float(recalls.min()) - minimum,
        )
    elif len(found):
        sentence = f"lowest recall of a class is that of {described[0]}, {requires}"
        yield Check(sentence, True, float(recalls.min()) - minimum)
    if missing := missing_classes(own, labels):
        yield Check(_not_checked(missing, labels, requires), False, math.nan)


def _not_checked(missing: Sequence[str], labels: Labels, requires: str) -> str:
    classes = "class" if len(missing) == 1 else f"{len(missing):,} classes"
    return (
        f"recall was not checked for {classes} {listed(missing)}: the test split has no such "
        f"{labels.nouns}, {requires}; add such {labels.nouns} to the test split"
    )


def _remedy(reviews: str) -> str:
    return (
        f"set training.class_weights: balanced (unless it is set already), add {reviews}, or set a "
        "lower evaluation.min_class_recall"
    )
