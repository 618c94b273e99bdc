"""The charts of a report as SVG elements in the colours of the page."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from components.evaluator.counts import Tenth
from components.evaluator.files import Results

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


_NAMED, _NAME_CHARACTERS = 12, 16
"""Number of classes whose names are at the axes of the confusion matrix, and their characters."""


class Charts(NamedTuple):
    """The charts of a report.

    Attributes:
      training: SVG elements of the curves of the training; empty without figures.
      evaluation: caption -> SVG element of a chart of the test split; empty without an evaluation.
    """

    training: str
    evaluation: dict[str, str]


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
    is_binary = results.labels.is_binary
    return Charts(curves, _of_two_classes(results) if is_binary else _of_classes(results))


def _of_two_classes(results: Results) -> dict[str, str]:
    counts, name = results.candidate, results.labels.names[1]
    curve, tenths = list(counts.curve()), list(counts.tenths())
    rates, recalls = [p.false_positive_rate for p in curve], [p.recall for p in curve]
    roc, axes = _axes("false positive rate", "true positive rate")
    axes.plot([0, 1], [0, 1], "--", color=_MUTED)
    axes.plot(rates, recalls, color=_FIRST)
    precisions, axes = _axes(f"recall of {name} reviews", f"precision of {name} reviews")
    axes.plot(recalls, [p.precision for p in curve], color=_FIRST)
    axes.set_ylim(0, 1.02)
    return {
        "Receiver operating characteristic": _svg(roc, "Receiver operating characteristic"),
        f"Precision and recall of {name} reviews at every threshold": _svg(
            precisions, f"Precision over recall of {name} reviews"
        ),
        "Predicted probabilities of the reviews of each label": _scores(
            tenths, f"predicted probability of {name}", results.labels.names
        ),
        "Calibration": _calibration(tenths, f"predicted probability of {name}"),
    }


def _of_classes(results: Results) -> dict[str, str]:
    tenths = list(results.candidate.tenths())
    return {
        "Fraction of the reviews of each class (row) with each answer (column)": _confusion(
            results
        ),
        "Probabilities of right and of wrong answers": _scores(
            tenths, "probability of the answer", ("wrong", "right")
        ),
        "Calibration": _calibration(tenths, "probability of the answer"),
    }


def _confusion(results: Results) -> str:
    names, confusion = results.labels.names, results.candidate.confusion
    figure, axes = _axes("answer", "label")
    fractions = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    axes.imshow(fractions, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    axes.grid(visible=False)
    if len(names) <= _NAMED:
        ticks = range(len(names))
        axes.set_xticks(ticks, [name[:_NAME_CHARACTERS] for name in names], rotation=90)
        axes.set_yticks(ticks, [name[:_NAME_CHARACTERS] for name in names])
    return _svg(figure, "Confusion matrix of the test split")


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


def _scores(tenths: Sequence[Tenth], probability: str, names: Sequence[str]) -> str:
    """Return a chart with the number of reviews in each tenth, by two cases with these names."""
    figure, axes = _axes(probability, "test reviews")
    # The two bars of a tenth stand side by side.
    columns = [each.negative for each in tenths], [each.positive for each in tenths]
    places, colours = (0.03, 0.07), (_SECOND, _FIRST)
    for name, counts, place, colour in zip(names, columns, places, colours, strict=True):
        axes.bar([each.lower + place for each in tenths], counts, 0.04, color=colour, label=name)
    axes.set_xlim(0, 1)
    axes.legend()
    return _svg(figure, "Number of reviews by predicted probability")


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
    figure.savefig(stream, format="svg", metadata=dict.fromkeys(names))
    opening, content = stream.getvalue().partition("<svg")[2].split(">", 1)
    [view_box] = re.findall('viewBox="[^"]*"', opening)
    width = round(figure.get_figwidth() * 96)
    for placeholder, variable in _VARIABLES.items():
        content = content.replace(placeholder, variable)
    return f'<svg role="img" aria-label="{label}" style="max-width: {width}px" {view_box}>{content}'
