"""The charts of a report as SVG elements in the colours of the page."""

from __future__ import annotations

import html
import io
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from components.evaluator.counts import Counts, Point, Tenth
from components.evaluator.files import Results
from components.evaluator.metrics import class_name
from components.run_report.classes import matrix_classes
from preprocessing.labels import Labels

# Colours in matplotlib's output that are replaced by variables of the page's style sheet, so that a
# chart has the colours of the light or the dark theme.
_TEXT, _MUTED, _FIRST, _SECOND = "#010101", "#020202", "#030303", "#040404"
_VARIABLES = {
    _TEXT: "var(--text)",
    _MUTED: "var(--muted)",
    _FIRST: "var(--first)",
    _SECOND: "var(--second)",
}
_STYLE: Any = {
    # Text instead of paths: a tenth of the size, and readable by a screen reader.
    "svg.fonttype": "none",
    # Equal input results in equal bytes.
    "svg.hashsalt": "report",
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": _TEXT,
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _TEXT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _TEXT,
    "ytick.color": _TEXT,
    "grid.color": _MUTED,
    "legend.frameon": False,
    "figure.facecolor": "none",
}


_NAME_CHARACTERS = 30
"""Maximum number of characters of the name of a class in a chart."""
_LEVEL_CHARACTERS = 6
"""Maximum number of characters of names that fit below the cells of the matrix side by side."""
_NUMBERED = 8
"""Maximum number of classes with numbers in the cells of the confusion matrix."""


class Charts(NamedTuple):
    """The charts of a report.

    Attributes:
      training: SVG elements of the curves of the training; empty without figures.
      evaluation: caption -> SVG element of a chart of the test split; empty without an evaluation.
      confusion: SVG element of the confusion matrix of more than two classes; empty for two
        classes, and for many classes without any confusion.
      matrix_size: the number of classes in `confusion`.
    """

    training: str
    evaluation: dict[str, str]
    confusion: str = ""
    matrix_size: int = 0


@matplotlib.rc_context(_STYLE)
def draw(training: Mapping[str, Any], results: Results | None) -> Charts:
    """Return the charts of a report.

    Args:
      training: the content of training.json; without its curve there is no chart of the training.
      results: the evaluation; None: it has no charts.
    """
    curves = ""
    if training.get("curve") and training.get("epoch_metrics"):
        curves = _training(training["curve"], training["epoch_metrics"])
    if results is None:
        return Charts(curves, {})
    if points := list(results.candidate.curve()):
        return Charts(curves, _of_two_classes(results, points))
    shown = matrix_classes(results.candidate, results.labels)
    matrix = _confusion(results.candidate, results.labels, shown) if shown else ""
    return Charts(curves, _of_classes(results), matrix, len(shown))


def _of_two_classes(results: Results, curve: Sequence[Point]) -> dict[str, str]:
    labels, tenths = results.labels, list(results.candidate.tenths())
    name, of_class = _short(labels.names[1]), _short(class_name(labels, 1))
    rates, recalls = [p.false_positive_rate for p in curve], [p.recall for p in curve]
    roc, axes = _axes("false positive rate", "true positive rate")
    axes.plot([0, 1], [0, 1], "--", color=_MUTED)
    axes.plot(rates, recalls, color=_FIRST)
    precisions, axes = _axes(f"recall of {of_class}", f"precision of {of_class}")
    axes.plot(recalls, [p.precision for p in curve], color=_FIRST)
    axes.set_ylim(0, 1.02)
    words = f"{labels.noun}s"
    probability = f"predicted probability of {name}"
    of_class = class_name(labels, 1)
    return {
        "Receiver operating characteristic": _svg(roc, "Receiver operating characteristic"),
        f"Precision and recall of {of_class} at every threshold": _svg(
            precisions, f"Precision over recall of {of_class}"
        ),
        f"Predicted probabilities of the {words} of each label": _scores(
            tenths, probability, list(map(_short, labels.names)), words
        ),
        "Calibration": _calibration(tenths, probability),
    }


def _of_classes(results: Results) -> dict[str, str]:
    tenths, words = list(results.candidate.tenths()), f"{results.labels.noun}s"
    return {
        "Probabilities of right and of wrong answers": _scores(
            tenths, "probability of the answer", ("wrong", "right"), words
        ),
        "Calibration: the fraction of right answers at each probability": _calibration(
            tenths, "probability of the answer"
        ),
    }


def _confusion(counts: Counts, labels: Labels, shown: Sequence[int]) -> str:
    """Return a picture of the confusion matrix.

    Args:
      counts: the counts of the candidate.
      labels: the classes.
      shown: the classes that are drawn.
    """
    part = counts.confusion_of(shown)
    fractions = part / np.maximum(counts.labelled[shown], 1)[:, np.newaxis]
    size = len(shown)
    figure, axes = _axes("answer", "label")
    # A cell for the names, and cells of a size in which a number can be read.
    side = 2.6 + (0.55 if size <= _NUMBERED else 0.26) * size
    figure.set_size_inches(side, side)
    axes.grid(visible=False)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    for row, column in np.argwhere(part > 0).tolist():
        colour = _FIRST if row == column else _SECOND
        # Even a rare confusion is visible.
        strength = 0.12 + 0.88 * float(fractions[row, column])
        place = (column - 0.5, row - 0.5)
        axes.add_patch(Rectangle(place, 1, 1, facecolor=colour, alpha=strength, linewidth=0))
        if size <= _NUMBERED:
            number = f"{part[row, column]:,}"
            axes.text(column, row, number, ha="center", va="center", fontsize=9)
    names = [_short(labels.names[label]) for label in shown]
    turned = 90 if max(map(len, names)) > _LEVEL_CHARACTERS else 0
    axes.set_xticks(range(size), names, rotation=turned, fontsize=9)
    axes.set_yticks(range(size), names, fontsize=9)
    axes.tick_params(length=0)
    return _svg(figure, "Confusion matrix of the test split")


def _short(name: str) -> str:
    """Return the beginning of a class's name in one line, as matplotlib shows it."""
    line = " ".join(name.split())
    shown = line if len(line) <= _NAME_CHARACTERS else f"{line[: _NAME_CHARACTERS - 1]}…"
    # matplotlib would interpret `$` as mathematics.
    return shown.replace("$", r"\$")


def _calibration(tenths: Sequence[Tenth], probability: str) -> str:
    figure, axes = _axes(probability, "observed fraction")
    axes.plot([0, 1], [0, 1], "--", color=_MUTED)
    observed = [each.positive / (each.negative + each.positive) for each in tenths]
    axes.plot([each.mean for each in tenths], observed, "o-", color=_FIRST)
    return _svg(figure, "Calibration of the predicted probabilities")


def _training(curve: Sequence[dict[str, float]], epochs: Sequence[dict[str, float]]) -> str:
    """Return charts of the loss, the accuracy and the learning rate."""
    steps = [point["step"] for point in curve]
    ends = [steps[-1] * (number + 1) / len(epochs) for number in range(len(epochs))]
    found = ""
    for name in ("loss", "accuracy", "learning_rate"):
        title = name.replace("_", " ")
        figure, axes = _axes("step", title)
        axes.plot(steps, [point.get(name, 0.0) for point in curve], color=_FIRST, label="train")
        if name != "learning_rate":
            held_out = [each.get(f"val_{name}", math.nan) for each in epochs]
            axes.plot(ends, held_out, "o-", color=_SECOND, label="eval split")
            axes.legend()
        found += _svg(figure, f"{title.capitalize()} over the steps")
    return found


def _scores(tenths: Sequence[Tenth], probability: str, names: Sequence[str], words: str) -> str:
    """Return a chart with the number of reviews in each tenth.

    Args:
      tenths: the tenths.
      probability: the title of the axis of the probabilities.
      names: the names of the two cases.
      words: the word for the reviews.
    """
    figure, axes = _axes(probability, f"test {words}")
    # The two bars of a tenth are side by side.
    columns = [each.negative for each in tenths], [each.positive for each in tenths]
    places, colours = (0.03, 0.07), (_SECOND, _FIRST)
    for name, counts, place, colour in zip(names, columns, places, colours, strict=True):
        # matplotlib leaves names that begin with an underscore out of a legend.
        label = f" {name}" if name.startswith("_") else name
        axes.bar([each.lower + place for each in tenths], counts, 0.04, color=colour, label=label)
    axes.set_xlim(0, 1)
    axes.legend()
    return _svg(figure, f"Number of {words} by predicted probability")


def _axes(x: str, y: str) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes, and these axes with their labels."""
    # Not pyplot, which has global state.
    figure = Figure(figsize=(4.2, 3.6), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    return figure, axes


def _svg(figure: Figure, label: str) -> str:
    """Return the SVG element of a figure, at most as wide as the figure."""
    stream = io.StringIO()
    names = ("Date", "Creator", "Format", "Type")
    with warnings.catch_warnings():
        # The font of matplotlib lacks some scripts. The browser has others.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(names))
    opening, content = stream.getvalue().partition("<svg")[2].split(">", 1)
    [view_box] = re.findall('viewBox="[^"]*"', opening)
    width = round(figure.get_figwidth() * 96)
    for placeholder, variable in _VARIABLES.items():
        content = content.replace(placeholder, variable)
    label = html.escape(label)
    return f'<svg role="img" aria-label="{label}" style="max-width: {width}px" {view_box}>{content}'
