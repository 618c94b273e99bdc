"""The figures of a run as one table, which MLflow shows on the page of the run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

from components.evaluator.files import Results
from components.evaluator.metrics import constant_share, key_figures
from components.run_report.content import Content

FIGURES_FILE = "figures.json"
"""The file in the artifacts of a run with the table."""
TABLES_TAG = "mlflow.loggedArtifacts"
"""MLflow's tag of a run that names the artifacts that are tables."""
TABLES = json.dumps([{"path": FIGURES_FILE, "type": "table"}])
"""The value of TABLES_TAG."""
_COLUMNS = ("figure", "value", "95 % interval", "served model", "unit", "part")
_TRAINING = (
    ("steps", "steps", 1.0, ""),
    ("seconds", "duration", 1.0, "s"),
    ("examples_per_second", "speed", 1.0, "Examples/s"),
    ("peak_rss_bytes", "peak memory", 2.0**20, "MiB"),
    ("cpu_utilisation", "processor use", 0.01, "%"),
)
"""Key of the summary of a training, title, the value of one unit, and the unit."""


class _Figure(NamedTuple):
    """A row of the table; a number that is not defined is NaN."""

    part: str
    title: str
    value: float
    unit: str = ""
    interval: tuple[float, float] | None = None
    served: float = math.nan


def figures_table(content: Content) -> str:
    """Return all figures of a run as JSON in the form of `mlflow.log_table`.

    `mlflow.log_table` itself would append the rows once more if a run is sent again.

    Args:
      content: the content of the report.
    """
    rows = [
        [
            figure.title,
            _rounded(figure.value),
            "{:.4f} to {:.4f}".format(*figure.interval) if figure.interval else "",
            _rounded(figure.served),
            figure.unit,
            figure.part,
        ]
        for figure in _figures(content)
    ]
    return json.dumps({"columns": _COLUMNS, "data": rows}, ensure_ascii=False)


def _figures(content: Content) -> Iterator[_Figure]:
    if content.evaluation:
        yield from _metrics(content.evaluation)
    for each in content.comparison.figures if content.comparison else ():
        before = math.nan if each.reference is None else each.reference
        title = f"{each.name} of the new span"
        yield _Figure("new span", title, each.value, "", each.interval, before)
    for key, title, scale, unit in _TRAINING:
        if key in content.training:
            yield _Figure("training", title, content.training[key] / scale, unit)
    for result in content.check.results if content.check else ():
        if isinstance(result.value, (int, float)):
            title = result.name.replace("_", " ")
            yield _Figure("serving check", title, result.value, result.unit)


def _metrics(results: Results) -> Iterator[_Figure]:
    own, base, part = results.candidate, results.baseline, "test split"
    for metric in key_figures(results.labels):
        served = metric.value(base) if base else math.nan
        yield _Figure(part, metric.title, metric.value(own), "", metric.interval(own), served)
    yield _Figure(part, "accuracy of a constant answer", constant_share(own))
    yield _Figure(part, f"{results.labels.noun}s", float(own.examples))


def _rounded(value: float) -> float | str:
    """Return a number with the digits that a person reads; empty if it is not defined."""
    if not math.isfinite(value):
        return ""
    if abs(value) < 1:
        return round(value, 4)
    return round(value, 2) if abs(value) < 100 else round(value)
