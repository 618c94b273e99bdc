"""The charts of a report. Each function returns the SVG element of one chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from components.evaluator.counts import Counts, Point, Tenth
from components.evaluator.metrics import class_metrics, class_name
from components.run_report.drawing import (
    FIRST,
    MUTED,
    PAGE,
    SECOND,
    new_axes,
    short_name,
    to_svg,
)
from core.training_summary import TrainingSummary
from preprocessing.labels import Labels

_LEVEL_CHARACTERS = 6
"""Maximum number of characters of names that fit below the cells of the matrix side by side."""
NUMBERED = 8
"""Maximum number of classes with numbers in the cells of the confusion matrix."""
_ALARM_ROOM = 0.12
"""Height of the row of alarms, as a fraction of that of the runs."""
NARROW_RUNS = 25
"""Maximum number of runs in a chart that is as wide as a column of the page."""


class Dot(NamedTuple):
    """A run in the chart of the last runs.

    Attributes:
      accuracy: its accuracy.
      interval: the ends of its 95 % confidence interval; None if they are unknown.
      is_good: whether its model was pushed, or blessed where nothing is pushed.
      span: the newest span that it read; empty for an input without spans.
      severity: see `Outcome.severity`.
    """

    accuracy: float
    interval: tuple[float, float] | None
    is_good: bool
    span: str = ""
    severity: str = ""

    @property
    def is_alarm(self) -> bool:
        """Whether the new span differed from that of the model that was served."""
        return self.severity in ("low", "high")


def confusion(counts: Counts, labels: Labels, shown: Sequence[int]) -> str:
    """Return a picture of the confusion matrix.

    Args:
      counts: the counts of the candidate.
      labels: the classes.
      shown: the classes that are drawn.
    """
    part = counts.confusion_of(shown)
    fractions = part / np.maximum(counts.labelled[shown], 1)[:, np.newaxis]
    size = len(shown)
    figure, axes = new_axes("answer of the model", "label")
    if size > NUMBERED:
        # A cell for the names, and cells of a size in which a colour can be seen.
        side = 2.6 + 0.26 * size
        figure.set_size_inches(side, side)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    for row, column in np.argwhere(part > 0).tolist():
        colour = FIRST if row == column else SECOND
        # Even a rare confusion is visible, and a number can be read on the strongest colour.
        strength = 0.12 + (0.5 if size <= NUMBERED else 0.88) * float(fractions[row, column])
        place = (column - 0.5, row - 0.5)
        axes.add_patch(Rectangle(place, 1, 1, facecolor=colour, alpha=strength, linewidth=0))
        if size <= NUMBERED:
            number = f"{part[row, column]:,}"
            axes.text(column, row, number, ha="center", va="center", fontsize=9 if size > 3 else 13)
    names = [short_name(labels.names[label]) for label in shown]
    turned = 90 if size > 3 and max(map(len, names)) > _LEVEL_CHARACTERS else 0
    font = 11 if size <= 3 else 9
    axes.set_xticks(range(size), names, rotation=turned, fontsize=font)
    axes.set_yticks(range(size), names, fontsize=font)
    axes.tick_params(length=0)
    return to_svg(figure, "Confusion matrix of the test split")


def class_scores(counts: Counts, labels: Labels, shown: Sequence[int]) -> str:
    """Return a chart of the recall and the precision of classes, with their intervals.

    Args:
      counts: the counts of the candidate.
      labels: the classes.
      shown: the classes that are drawn, from top to bottom.
    """
    figure, axes = new_axes("", "")
    figure.set_size_inches(4.2, max(3.4, 1.2 + 0.34 * len(shown)))
    for offset, colour, marker, name in (
        (-0.14, FIRST, "o", "recall"),
        (0.14, SECOND, "D", "precision"),
    ):
        found = []
        for row, label in enumerate(shown):
            recall, precision, _ = class_metrics(labels, label)
            metric = recall if name == "recall" else precision
            if (interval := metric.interval(counts)) is not None:
                found.append((metric.value(counts), row + offset, interval))
        for _, height, interval in found:
            axes.plot(interval, (height, height), color=colour, linewidth=1.5)
        points = [value for value, _, _ in found], [height for _, height, _ in found]
        axes.plot(*points, marker, color=colour, markersize=6, label=name, clip_on=False)
    axes.set_yticks(range(len(shown)), [short_name(labels.names[n]) for n in shown], fontsize=10)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(right=1)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return to_svg(figure, "Recall and precision of the classes")


def loss(training: TrainingSummary) -> str:
    """Return a chart of the losses of a training over the steps."""
    held_out = [each.val_loss for each in training.epoch_metrics]
    return _over_steps("loss", training, [point.loss for point in training.curve], held_out)


def accuracy(training: TrainingSummary) -> str:
    """Return a chart of the accuracies of a training over the steps."""
    held_out = [each.val_accuracy for each in training.epoch_metrics]
    return _over_steps("accuracy", training, [point.accuracy for point in training.curve], held_out)


def learning_rate(training: TrainingSummary) -> str:
    """Return a chart of the learning rate of a training over the steps."""
    rates = [point.learning_rate for point in training.curve]
    return _over_steps("learning rate", training, rates)


def _over_steps(
    title: str, training: TrainingSummary, values: Sequence[float], held_out: Sequence[float] = ()
) -> str:
    """Return a chart of the values of a curve, and of those of the eval split after each epoch."""
    steps = [point.step for point in training.curve]
    figure, axes = new_axes("step", title)
    axes.plot(steps, values, color=FIRST, label="train")
    if held_out:
        ends = [steps[-1] * (number + 1) / len(held_out) for number in range(len(held_out))]
        axes.plot(ends, held_out, "o-", color=SECOND, label="eval split")
        axes.legend()
    return to_svg(figure, f"{title.capitalize()} over the steps")


def calibration(tenths: Sequence[Tenth], probability: str) -> str:
    """Return a chart of the observed fraction at each predicted probability.

    Args:
      tenths: the tenths.
      probability: the title of the axis of the probabilities.
    """
    figure, axes = new_axes(probability, "observed fraction")
    axes.plot([0, 1], [0, 1], "--", color=MUTED)
    observed = [each.positive / (each.negative + each.positive) for each in tenths]
    axes.plot([each.mean for each in tenths], observed, "o-", color=FIRST)
    return to_svg(figure, "Calibration of the predicted probabilities")


def probabilities(
    tenths: Sequence[Tenth], probability: str, names: Sequence[str], words: str
) -> str:
    """Return a chart with the number of reviews in each tenth.

    Args:
      tenths: the tenths.
      probability: the title of the axis of the probabilities.
      names: the names of the two cases.
      words: the word for the reviews.
    """
    figure, axes = new_axes(probability, f"test {words}")
    # The two bars of a tenth are side by side.
    columns = [each.negative for each in tenths], [each.positive for each in tenths]
    places, colours = (0.03, 0.07), (SECOND, FIRST)
    for name, counts, place, colour in zip(names, columns, places, colours, strict=True):
        # matplotlib leaves names that begin with an underscore out of a legend.
        label = f" {name}" if name.startswith("_") else name
        axes.bar([each.lower + place for each in tenths], counts, 0.04, color=colour, label=label)
    axes.set_xlim(0, 1)
    axes.legend()
    return to_svg(figure, f"Number of {words} by predicted probability")


def receiver(curve: Sequence[Point]) -> str:
    """Return the receiver operating characteristic of two classes."""
    figure, axes = new_axes("false positive rate", "true positive rate")
    axes.plot([0, 1], [0, 1], "--", color=MUTED)
    axes.plot([p.false_positive_rate for p in curve], [p.recall for p in curve], color=FIRST)
    return to_svg(figure, "Receiver operating characteristic")


def precision_recall(curve: Sequence[Point], labels: Labels) -> str:
    """Return the precision over the recall of the second of two classes."""
    name = class_name(labels, 1)
    figure, axes = new_axes(f"recall of {short_name(name)}", f"precision of {short_name(name)}")
    axes.plot([p.recall for p in curve], [p.precision for p in curve], color=FIRST)
    axes.set_ylim(0, 1.02)
    return to_svg(figure, f"Precision over recall of {name}")


def history(dots: Sequence[Dot], minimum: float) -> str:
    """Return a chart of the accuracies of runs.

    Args:
      dots: the runs, the oldest first.
      minimum: the threshold `evaluation.min_accuracy` of the last run; 0: none.
    """
    has_spans = any(dot.span for dot in dots)
    order = "newest span of the run" if has_spans else "run (the last one is the newest)"
    figure, axes = new_axes(order, "accuracy")
    if len(dots) > NARROW_RUNS:
        figure.set_size_inches(9, 3.6)
    _runs(axes, dots)
    low, high = axes.get_ylim()
    # A threshold far below would press all runs together.
    if minimum > low - (high - low):
        axes.axhline(minimum, linestyle="--", color=MUTED, label="required")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if has_spans:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: _span(dots, place)))
        axes.tick_params(axis="x", rotation=30)
    axes.set_xlim(0.5, len(dots) + 0.5)
    _alarms(axes, dots)
    axes.grid(axis="y")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, handletextpad=0.3)
    return to_svg(figure, f"Accuracy of the last {len(dots)} runs")


def _span(dots: Sequence[Dot], place: float) -> str:
    """Return the span of the run at a place of the axis; empty if there is no run."""
    number = round(place)
    return dots[number - 1].span if 1 <= number <= len(dots) else ""


def _alarms(axes: Axes, dots: Sequence[Dot]) -> None:
    """Draw the alarms in a row above the runs; without any, change nothing."""
    if not any(dot.is_alarm for dot in dots):
        return
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + _ALARM_ROOM * (high - low))
    for severity, fill, name in (("high", SECOND, "high alarm"), ("low", PAGE, "low alarm")):
        places = [n for n, dot in enumerate(dots, 1) if dot.severity == severity]
        if places:
            row = [1 - _ALARM_ROOM / 2] * len(places)
            where = axes.get_xaxis_transform()
            points = axes.plot(places, row, "v", label=name, markersize=8, transform=where)
            points[0].set(markerfacecolor=fill, markeredgecolor=SECOND)


def _runs(axes: Axes, dots: Sequence[Dot]) -> None:
    axes.plot(range(1, len(dots) + 1), [dot.accuracy for dot in dots], color=MUTED, linewidth=1)
    for number, dot in enumerate(dots, 1):
        if dot.interval:
            colour = FIRST if dot.is_good else SECOND
            axes.plot((number, number), dot.interval, color=colour, linewidth=1.5)
    for is_good, colour, fill, name in (
        (True, FIRST, FIRST, "pushed or blessed"),
        (False, SECOND, PAGE, "rejected"),
    ):
        places = [n for n, dot in enumerate(dots, 1) if dot.is_good == is_good]
        if places:
            heights = [dots[n - 1].accuracy for n in places]
            points = axes.plot(places, heights, "o", label=name, zorder=3, markersize=7)
            points[0].set(markerfacecolor=fill, markeredgecolor=colour)
