"""Figures of matplotlib as SVG elements in the colours of a page."""

from __future__ import annotations

import html
import io
import re
import warnings
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

# Colours in matplotlib's output that are replaced by variables of the page's style sheet, so that a
# chart has the colours of the light or the dark theme.
TEXT, MUTED, FIRST, SECOND, PAGE = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES = {
    TEXT: "var(--text)",
    MUTED: "var(--muted)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
    PAGE: "var(--page)",
}
STYLE: Any = {
    # Text instead of paths: a tenth of the size, and readable by a screen reader.
    "svg.fonttype": "none",
    # Equal input results in equal bytes.
    "svg.hashsalt": "report",
    "font.family": "sans-serif",
    "font.size": 11,
    "text.color": TEXT,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": TEXT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "grid.color": MUTED,
    "grid.alpha": 0.3,
    "legend.frameon": False,
    "figure.facecolor": "none",
}
"""The parameters of matplotlib for the figures of a page."""
_NAME_CHARACTERS = 30
"""Maximum number of characters of the name of a class in a chart."""


def new_axes(x: str, y: str) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes, and these axes with their labels.

    Args:
      x: the label of the horizontal axis.
      y: the label of the vertical axis.
    """
    # Not pyplot, which has global state.
    figure = Figure(figsize=(4.2, 3.4), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    return figure, axes


def to_svg(figure: Figure, label: str) -> str:
    """Return the SVG element of a figure, at most as wide as the figure.

    Args:
      figure: the figure.
      label: the text for a screen reader.
    """
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


def short_name(name: str) -> str:
    """Return the beginning of a class's name in one line, as matplotlib shows it."""
    line = " ".join(name.split())
    shown = line if len(line) <= _NAME_CHARACTERS else f"{line[: _NAME_CHARACTERS - 1]}…"
    # matplotlib would interpret `$` as mathematics.
    return shown.replace("$", r"\$")
