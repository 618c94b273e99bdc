"""The figures of a run as one table, which MLflow shows on the page of the run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import NamedTuple

from components.evaluator.files import Results
from components.evaluator.metrics import constant_share, key_figures
from components.run_report.content import Content
from core.training_summary import TrainingSummary

FIGURES_FILE = "figures.json"
"""The file in the artifacts of a run with the table."""
TABLES_TAG = "mlflow.loggedArtifacts"
"""MLflow's tag of a run that names the artifacts that are tables."""
TABLES = json.dumps([{"path": FIGURES_FILE, "type": "table"}])
"""The value of TABLES_TAG."""
_COLUMNS = ("figure", "value", "95 % interval", "served model", "unit", "part")


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
    if content.training:
        yield from _of_training(content.training)
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
    yield _Figure(part, results.labels.nouns, float(own.examples))


def _of_training(training: TrainingSummary) -> Iterator[_Figure]:
    measured, part = training.measured, "training"
    yield _Figure(part, "steps", float(measured.steps))
    yield _Figure(part, "duration", training.seconds, "s")
    yield _Figure(part, "speed", measured.examples_per_second, "Examples/s")
    yield _Figure(part, "peak memory", measured.peak_rss_bytes / 2**20, "MiB")
    if measured.cpu_utilisation is not None:
        yield _Figure(part, "processor use", 100 * measured.cpu_utilisation, "%")


def _rounded(value: float) -> float | str:
    """Return a number with the digits that a person reads; empty if it is not defined."""
    if not math.isfinite(value):
        return ""
    if abs(value) < 1:
        return round(value, 4)
    return round(value, 2) if abs(value) < 100 else round(value)
