"""The charts of a report as SVG elements in the colours of the page."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from components.evaluator.files import Results
from components.evaluator.metrics import Tenth
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


@matplotlib.rc_context(_STYLE)
def draw(training: Mapping[str, Any], results: Results | None) -> dict[str, str]:
    """Return the charts of a report as SVG elements; empty where the figures are missing."""
    found = {"training": ""}
    if training.get("curve") and training.get("epoch_metrics"):
        found["training"] = _training(training["curve"], training["epoch_metrics"])
    if results:
        counts, name = results.candidate, results.labels.names[1]
        curve, tenths = list(counts.curve()), list(counts.tenths())
        rates, recalls = [p.false_positive_rate for p in curve], [p.recall for p in curve]
        figure, axes = _axes("false positive rate", "true positive rate")
        axes.plot([0, 1], [0, 1], "--", color=_MUTED)
        axes.plot(rates, recalls, color=_FIRST)
        found["roc"] = _svg(figure, "Receiver operating characteristic")
        figure, axes = _axes(f"recall of {name} reviews", f"precision of {name} reviews")
        axes.plot(recalls, [p.precision for p in curve], color=_FIRST)
        axes.set_ylim(0, 1.02)
        found["precision_recall"] = _svg(figure, f"Precision over recall of {name} reviews")
        figure, axes = _axes(f"predicted probability of {name}", "observed fraction")
        axes.plot([0, 1], [0, 1], "--", color=_MUTED)
        observed = [each.positive / (each.negative + each.positive) for each in tenths]
        axes.plot([each.mean for each in tenths], observed, "o-", color=_FIRST)
        found["calibration"] = _svg(figure, "Calibration of the predicted probabilities")
        found["scores"] = _scores(tenths, results.labels)
    return found


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


def _scores(tenths: Sequence[Tenth], labels: Labels) -> str:
    figure, axes = _axes(f"predicted probability of {labels.names[1]}", "test reviews")
    # The two bars of a tenth stand side by side.
    columns = [each.negative for each in tenths], [each.positive for each in tenths]
    places, colours = (0.03, 0.07), (_SECOND, _FIRST)
    for name, counts, place, colour in zip(labels.names, columns, places, colours, strict=True):
        axes.bar([each.lower + place for each in tenths], counts, 0.04, color=colour, label=name)
    axes.set_xlim(0, 1)
    axes.legend(title="label")
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
