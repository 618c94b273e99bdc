"""The charts of a report as SVG elements, which follow the colours of the page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from components.run_report.evaluation import Bin
from components.run_report.history import Step

# Placeholders in matplotlib's output -> the variables of the page's style sheet, so that a chart
# follows the light and the dark theme.
_TEXT, _MUTED, _FIRST, _SECOND, _THIRD = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES = {
    _TEXT: "var(--text)",
    _MUTED: "var(--muted)",
    _FIRST: "var(--first)",
    _SECOND: "var(--second)",
    _THIRD: "var(--third)",
}
_STATE_COLOURS = {"done": _FIRST, "cached": _SECOND}
_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_STYLE: Any = {
    # Text instead of paths: a tenth of the size, and readable by a screen reader.
    "svg.fonttype": "none",
    # The same input gives the same bytes.
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
def training_curve(curve: Sequence[dict[str, float]], epochs: Sequence[dict[str, float]]) -> str:
    """Draw loss, accuracy and learning rate over the steps.

    Args:
      curve: the points of training.json.
      epochs: the metrics of each epoch.
    """
    steps = [point["step"] for point in curve]
    ends = [steps[-1] * (number + 1) / len(epochs) for number in range(len(epochs))]
    figure = _figure(11, 3.2)
    axes = figure.subplots(1, 3)
    for panel, name in zip(axes, ("loss", "accuracy"), strict=False):
        panel.plot(steps, [point[name] for point in curve], color=_FIRST, label="train")
        held_out = [each.get(f"val_{name}") for each in epochs]
        panel.plot(ends, held_out, "o-", color=_SECOND, label="eval split")
        panel.set_title(name)
        panel.legend()
    axes[2].plot(steps, [point.get("learning_rate", 0.0) for point in curve], color=_THIRD)
    axes[2].set_title("learning rate")
    for panel in axes:
        panel.set_xlabel("step")
    return _svg(figure, "Loss, accuracy and learning rate over the steps")


@matplotlib.rc_context(_STYLE)
def roc(points: Sequence[tuple[float, float, float]]) -> str:
    """Draw the receiver operating characteristic."""
    figure = _figure(4.2, 3.6)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "--", color=_MUTED)
    axes.plot([x for x, _, _ in points], [y for _, y, _ in points], color=_FIRST)
    axes.set_xlabel("false positive rate")
    axes.set_ylabel("true positive rate")
    return _svg(figure, "Receiver operating characteristic")


@matplotlib.rc_context(_STYLE)
def calibration(bins: Sequence[Bin]) -> str:
    """Draw the observed fraction of positive reviews over the predicted probability."""
    figure = _figure(4.2, 3.6)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "--", color=_MUTED)
    axes.plot([b.predicted for b in bins], [b.observed for b in bins], "o-", color=_FIRST)
    axes.set_xlabel("predicted probability of positive")
    axes.set_ylabel("observed fraction")
    return _svg(figure, "Calibration of the predicted probabilities")


@matplotlib.rc_context(_STYLE)
def lengths(names: Sequence[str], examples: Sequence[int]) -> str:
    """Draw the number of reviews of each length."""
    figure = _figure(5.6, 3)
    axes = figure.subplots()
    bars = axes.bar(range(len(names)), examples, color=_FIRST)
    axes.bar_label(bars, [f"{count:,}" for count in examples])
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("test reviews")
    return _svg(figure, "Number of reviews by length")


@matplotlib.rc_context(_STYLE)
def timeline(steps: Sequence[Step]) -> str:
    """Draw the components of a run over its seconds."""
    figure = _figure(9, 0.32 * len(steps) + 0.9)
    axes = figure.subplots()
    colours = [_STATE_COLOURS.get(step.state, _THIRD) for step in steps]
    bars = axes.barh(
        range(len(steps)),
        [step.seconds for step in steps],
        left=[step.started for step in steps],
        color=colours,
    )
    labels = [
        f"{step.seconds:.1f} s" + ("" if step.state == "done" else f", {step.state}")
        for step in steps
    ]
    axes.bar_label(bars, labels, padding=3)
    axes.set_yticks(range(len(steps)), [step.name for step in steps])
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("seconds since the start of the run")
    return _svg(figure, "Seconds of each component")


def _figure(width: float, height: float) -> Figure:
    # Not pyplot, which keeps global state.
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def _svg(figure: Figure, label: str) -> str:
    """Return the SVG element of a figure, with a text alternative."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return _embeddable(stream.getvalue(), label, round(figure.get_figwidth() * 96))


def _embeddable(document: str, label: str, width: int) -> str:
    """Return the root element of an SVG document, for use inside an HTML page.

    It has a text alternative and the width of the page, at most `width` pixels. matplotlib's style
    sheet is removed, because it would apply to the whole page.
    """
    root = ElementTree.fromstring(document)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    root.attrib |= {"role": "img", "aria-label": label, "style": f"max-width: {width}px"}
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    element = ElementTree.tostring(root, encoding="unicode")
    for placeholder, variable in _VARIABLES.items():
        element = element.replace(placeholder, variable)
    return element
