"""Draw a chart into an SVG file for the documentation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

_STYLE: Any = {
    # With text instead of paths the file has a tenth of the size and is searchable.
    "svg.fonttype": "none",
    # The same figures give the same bytes.
    "svg.hashsalt": "benchmarks",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def save(draw: Callable[[Any], None], size: tuple[float, float], file: Path) -> None:
    """Write the SVG of a chart.

    Args:
      draw: draws into the axes of matplotlib that it gets.
      size: width and height in inches.
      file: the file to write.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        # Not pyplot, which keeps global state.
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        figure.savefig(file, format="svg", metadata={"Date": None})
