"""The HTML page with the history of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.run_report.history import Run
from components.run_report.page import environment
from components.run_report.pictures import history_picture, run_dots

_PICTURE = 100
"""Maximum number of runs in the picture."""


def render(name: str, runs: Sequence[Run], rows: Sequence[Mapping[str, str]]) -> str:
    """Return a page with a picture and a table of runs, as one document without other files.

    Args:
      name: the name of the pipeline.
      runs: at least one run, the newest first.
      rows: column -> text of each run, in the same order.
    """
    dots = run_dots(runs[:_PICTURE])
    minimum = runs[0].settings.get("evaluation", {}).get("min_accuracy", 0.0)
    return (
        environment()
        .get_template("runs.html.j2")
        .render(
            name=name,
            picture=history_picture(dots, minimum) if len(dots) > 1 else None,
            rows=rows,
        )
    )
