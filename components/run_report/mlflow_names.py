"""The metrics of a run in MLflow, and their names, which allow few characters and are short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from components.evaluator.counts import Counts
from components.evaluator.metrics import key_figures
from preprocessing.labels import Labels

CLASSES_FILE = "classes.csv"
"""The file in the artifacts of a run with the metrics of all of more than two classes."""
_COMPARED = frozenset(
    {
        "binary_accuracy",
        "sparse_categorical_accuracy",
        "auc",
        "specificity",
        "recall",
        "macro_f1",
        "lowest_recall",
        "mean_absolute_error",
    }
)
"""Names of the `key_figures` by which a person compares runs. MLflow draws a chart of each metric,
so the others are in FIGURES_FILE only."""
_CHARACTERS = 50
"""Maximum number of characters of a class in a name. A file of MLflow has the name of the metric,
and a file system allows 255 bytes, of which a character requires up to four."""
_NUMBERED = re.compile(r"\.\.\d+$")


def final_values(counts: Counts, labels: Labels) -> Iterator[tuple[str, float]]:
    """Yield the name and the value of the metrics of an evaluation that are compared.

    Args:
      counts: the counts of the candidate.
      labels: the classes.
    """
    names = tuple(metric_name(labels, label) for label in range(labels.number))
    for metric in key_figures(replace(labels, names=names)):
        if metric.name in _COMPARED:
            yield metric.title, metric.value(counts)


def metric_name(labels: Labels, label: int) -> str:
    """Return the name of a class in the name of a metric. Two classes never have the same one.

    Each character that MLflow does not allow is replaced by an underscore. A name that is changed
    or shortened gets the index of the class, after two full stops.

    Args:
      labels: the classes.
      label: the index of the class.
    """
    name = labels.names[label]
    allowed = re.sub(r"[^\w \-.]", "_", name)[:_CHARACTERS].rstrip()
    if allowed == name and not _NUMBERED.search(name):
        return name
    return f"{allowed}..{label}"
