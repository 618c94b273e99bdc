"""The names of the metrics of classes in MLflow, which allows few characters and short names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from components.evaluator.counts import Counts
from components.evaluator.metrics import key_figures, metrics_by_class
from preprocessing.labels import Labels

MOST_CLASSES = 100
"""Number of classes above which their metrics are only in CLASSES_FILE."""
CLASSES_FILE = "classes.csv"
"""The file in the artifacts of a run with the metrics of all of more than two classes."""
_CHARACTERS = 50
"""Maximum number of characters of a class in a name. A file of MLflow has the name of the metric,
and a file system allows 255 bytes, of which a character requires up to four."""
_NUMBERED = re.compile(r"\.\.\d+$")


def final_values(counts: Counts, labels: Labels) -> Iterator[tuple[str, float]]:
    """Yield the name and the value of the metrics of an evaluation.

    They are the `key_figures`, and of at most MOST_CLASSES classes the `metrics_by_class`.

    Args:
      counts: the counts of the candidate.
      labels: the classes.
    """
    names = tuple(metric_name(labels, label) for label in range(labels.number))
    named = replace(labels, names=names)
    found = key_figures(named)
    if labels.number <= MOST_CLASSES:
        found += metrics_by_class(named)
    for metric in found:
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
