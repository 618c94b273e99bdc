"""The pictures of a report, each with a sentence about what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import numpy as np

from components.evaluator.counts import Counts, Tenth
from components.evaluator.files import Results
from components.evaluator.metrics import ACCURACY, class_metrics, class_name, reviews_of_class
from components.run_report import charts
from components.run_report.charts import Dot
from components.run_report.classes import matrix_classes, urgent_classes
from components.run_report.drawing import STYLE, short_name
from components.run_report.history import Run, recorded_decision
from components.run_report.verdict import judge
from core.training_summary import TrainingSummary
from preprocessing.labels import Labels
from preprocessing.reading.listing import short

_CLASSES = 15
"""Maximum number of classes in the chart of recall and precision."""
_EXACT = 0.05
"""Mean distance of probabilities from observed fractions up to which they are called exact."""
_SAME_LOSS = 1.01
"""Ratio of two losses up to which they are called equal."""


class Picture(NamedTuple):
    """A picture with its caption.

    Attributes:
      title: its title.
      svg: the SVG element.
      sentence: what it shows, with the figures of this run.
      is_wide: whether the picture is too wide for a column of the page.
    """

    title: str
    svg: str
    sentence: str
    is_wide: bool = False


class Pictures(NamedTuple):
    """The pictures of a report: those that everybody reads, and further ones."""

    main: Sequence[Picture]
    more: Sequence[Picture]


@matplotlib.rc_context(STYLE)
def draw(
    training: TrainingSummary | None, results: Results | None, dots: Sequence[Dot]
) -> Pictures:
    """Return the pictures of a report.

    Args:
      training: the summary of the training; without a curve it has no charts.
      results: the evaluation; None: it has no charts.
      dots: the last runs and this one, the oldest first; the chart requires at least two.
    """
    main: list[Picture] = []
    more: list[Picture] = []
    if results:
        counts, labels = results.candidate, results.labels
        if shown := matrix_classes(counts, labels):
            main.append(_confusion(counts, labels, shown))
        main.append(_class_scores(counts, labels))
    if training and training.curve and training.epoch_metrics:
        losses = [each.val_loss for each in training.epoch_metrics]
        # Early stopping has restored the weights of an earlier epoch.
        is_best = training.metrics.val_loss == min(losses) < losses[-1]
        main.append(Picture("Training", charts.loss(training), _learning(losses, is_best=is_best)))
        more.append(
            Picture(
                "Accuracy during the training",
                charts.accuracy(training),
                "The steps are those of the chief's first replica. From the second epoch on, the "
                "model has seen the train texts before.",
            )
        )
        rate = charts.learning_rate(training)
        more.append(Picture("Learning rate", rate, "The size of the steps of the optimizer."))
    if results:
        tenths = list(counts.tenths())
        main.append(_calibration(tenths, counts, labels))
        more += _of_probabilities(tenths, counts, labels)
    if len(dots) > 1:
        main.append(history_picture(dots, results.settings.min_accuracy if results else 0.0))
    return Pictures(main, more)


def run_dots(runs: Sequence[Run]) -> list[Dot]:
    """Return the runs with a known accuracy, the oldest first.

    Args:
      runs: the runs, the newest first.
    """
    return [
        Dot(
            run.outcome.accuracy,
            run.outcome.accuracy_interval,
            bool(judge(recorded_decision(run)).is_good),
            run.span,
            run.outcome.severity,
        )
        for run in reversed(runs)
        if run.outcome and np.isfinite(run.outcome.accuracy)
    ]


def own_dot(results: Results, is_good: bool, span: str, severity: str) -> Dot:
    """Return the run of an evaluation.

    Args:
      results: the evaluation.
      is_good: see `Dot`.
      span: see `Dot`.
      severity: see `Dot`.
    """
    counts = results.candidate
    return Dot(ACCURACY.value(counts), ACCURACY.interval(counts), is_good, span, severity)


@matplotlib.rc_context(STYLE)
def history_picture(dots: Sequence[Dot], minimum: float) -> Picture:
    """Return the picture of the last runs.

    Args:
      dots: at least two runs, the oldest first.
      minimum: the threshold `evaluation.min_accuracy` of the last run; 0: none.
    """
    accuracies = [dot.accuracy for dot in dots]
    last, best = accuracies[-1], max(accuracies)
    if last == best:
        sentence = f"The newest of {len(dots)} runs has the highest accuracy, {last:.4f}."
    else:
        place = len(dots) - accuracies[::-1].index(best)
        span = dots[place - 1].span
        which = f"that of span {span}" if span else f"run {place} of the picture"
        sentence = (
            f"The newest of {len(dots)} runs has the accuracy {last:.4f}; the best one is {which} "
            f"with {best:.4f}."
        )
    note = "A line is a 95 % interval. Runs with other test data cannot be compared exactly."
    if alarms := [dot for dot in dots if dot.is_alarm]:
        sentence += (
            f" Alarms: {len(alarms)}, the last one in span {alarms[-1].span}. After an alarm the "
            "model that was served until then did not fit the new span."
        )
    is_wide = len(dots) > charts.NARROW_RUNS
    return Picture("The last runs", charts.history(dots, minimum), f"{sentence} {note}", is_wide)


def _confusion(counts: Counts, labels: Labels, shown: Sequence[int]) -> Picture:
    words = labels.nouns
    right = int(counts.right.sum())
    sentence = (
        f"{right:,} of {counts.examples:,} test {words} are on the diagonal: the right answers."
    )
    if found := counts.confusions(1):
        [most] = found
        sentence += (
            f" The most frequent mistake: {reviews_of_class(labels, most.label)} answered as "
            f"{short(labels.names[most.predicted])}, {most.reviews:,} of "
            f"{counts.labelled[most.label]:,} ({100 * most.share:.1f}\u00a0%)."
        )
    if len(shown) < labels.number:
        sentence += (
            f" Shown are the {len(shown)} of {labels.number:,} classes that are confused most."
        )
    picture = charts.confusion(counts, labels, shown)
    return Picture("Confusion", picture, sentence, is_wide=len(shown) > charts.NUMBERED)


def _class_scores(counts: Counts, labels: Labels) -> Picture:
    many = labels.number > _CLASSES
    shown = urgent_classes(counts, _CLASSES) if many else list(range(labels.number))
    recalls = {
        label: counts.right[label] / counts.labelled[label]
        for label in range(labels.number)
        if counts.labelled[label]
    }
    sentence = f"The test split has no {labels.nouns}."
    if recalls:
        label = min(recalls, key=lambda each: (recalls[each], each))
        interval = class_metrics(labels, label)[0].interval(counts)
        assert interval is not None
        sentence = (
            f"The model finds the {reviews_of_class(labels, label)} least reliably: "
            f"{counts.right[label]:,} of {counts.labelled[label]:,}, a recall of "
            f"{recalls[label]:.2f} ({interval[0]:.2f} – {interval[1]:.2f})."
        )
    if many:
        sentence += f" Shown are the {len(shown)} of {labels.number:,} classes with the lowest F1."
    sentence += " A line is a 95 % interval."
    return Picture("Scores by class", charts.class_scores(counts, labels, shown), sentence)


def _learning(losses: Sequence[float], *, is_best: bool) -> str:
    """Return a sentence about the losses of the eval split.

    Args:
      losses: the loss after each epoch.
      is_best: whether the model has the weights of the best epoch, and not those of the last one.
    """
    best = losses.index(min(losses)) + 1
    if len(losses) == 1:
        return f"After the only epoch the loss of the eval split is {losses[0]:.4f}."
    if is_best:
        return (
            f"The loss of the eval split was lowest after epoch {best} of {len(losses)}, with "
            f"{losses[best - 1]:.4f}. The model has the weights of that epoch."
        )
    first_as_good = next(n for n, each in enumerate(losses, 1) if each <= _SAME_LOSS * min(losses))
    if first_as_good < len(losses) and losses[-1] <= _SAME_LOSS * min(losses):
        return (
            f"The loss of the eval split hardly changed after epoch {first_as_good} of "
            f"{len(losses)}, and is {losses[-1]:.4f} at the end; more epochs would not help."
        )
    if best == len(losses):
        return (
            f"The loss of the eval split still fell in the last of {best} epochs, from "
            f"{losses[-2]:.4f} to {losses[-1]:.4f}; more epochs may help."
        )
    return (
        f"The loss of the eval split was lowest after epoch {best} of {len(losses)} "
        f"({losses[best - 1]:.4f}) and is {losses[-1]:.4f} at the end: the later epochs fit only "
        "the train split."
    )


def _calibration(tenths: Sequence[Tenth], counts: Counts, labels: Labels) -> Picture:
    sizes = np.array([each.negative + each.positive for each in tenths], np.float64)
    observed = np.array([each.positive for each in tenths]) / sizes
    distances = np.abs(observed - [each.mean for each in tenths])
    distance = float((distances * sizes).sum() / max(sizes.sum(), 1))
    if labels.is_binary:
        probability = f"predicted probability of {short_name(labels.names[1])}"
        fraction = f"observed fraction of {reviews_of_class(labels, 1)}"
    else:
        probability, fraction = "probability of the answer", "fraction of right answers"
    trust = "can be read as they are" if distance <= _EXACT else "should not be read as they are"
    sentence = (
        f"On average the {probability} differs by {distance:.3f} from the {fraction}, so the "
        f"probabilities {trust}. Exact probabilities would be on the dashed line."
    )
    return Picture(
        "Calibration", charts.calibration(tenths, probability), sentence.replace("\\$", "$")
    )


def _of_probabilities(tenths: Sequence[Tenth], counts: Counts, labels: Labels) -> list[Picture]:
    words = labels.nouns
    if not labels.is_binary:
        picture = charts.probabilities(
            tenths, "probability of the answer", ("wrong", "right"), words
        )
        note = (
            "The further right the right answers and the further left the wrong ones, the better."
        )
        return [Picture("Probabilities of right and of wrong answers", picture, note)]
    probability = f"predicted probability of {short_name(labels.names[1])}"
    names = [short_name(name) for name in labels.names]
    pictures = [
        Picture(
            f"Predicted probabilities of the {words} of each label",
            charts.probabilities(tenths, probability, names, words),
            f"{words.capitalize()} near the middle are those of which the model is unsure.",
        )
    ]
    if curve := list(counts.curve()):
        of_class = class_name(labels, 1)
        pictures += [
            Picture(
                "Receiver operating characteristic",
                charts.receiver(curve),
                "The closer to the upper left corner, the better; the dashed line is guessing.",
            ),
            Picture(
                f"Precision and recall of {of_class}",
                charts.precision_recall(curve, labels),
                "Each point is another threshold of the probability; the model uses 0.5.",
            ),
        ]
    return pictures
