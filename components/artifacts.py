"""The artifact types of this package's components.

For types in compiled pipelines TFX requires a TYPE_NAME that is an import path: a package of at
most 21 characters, a dot, the class. See `components.__getattr__`.
"""

from __future__ import annotations

from tfx import types


class RejectedLines(types.Artifact):
    """The lines that did not become Examples (`lines*.jsonl`), and the counts of all lines:
    in total (`summary.json` and custom properties) and for each file (`files.jsonl`). The custom
    property `reading` has the format, the columns and the scale of the labels."""

    TYPE_NAME = "components.RejectedLines"


class Report(types.Artifact):
    """An HTML page on the run (`report.html`), which needs no other file."""

    TYPE_NAME = "components.Report"


class KeyFigures(types.Artifact):
    """The metrics of the candidate as custom properties, which the page of a cluster shows."""

    TYPE_NAME = "components.KeyFigures"


class Classification(types.Artifact):
    """ROC and confusion matrix as custom properties, which the page of a cluster shows."""

    TYPE_NAME = "components.Classification"


SYSTEM_TYPES = {
    Report.TYPE_NAME: "system.HTML",
    KeyFigures.TYPE_NAME: "system.Metrics",
    Classification.TYPE_NAME: "system.ClassificationMetrics",
}
"""Artifact type -> the type of Kubeflow Pipelines and Vertex AI whose content their pages show."""


class CheckedData(types.Artifact):
    """A record that every split of a data set fits the schema (`checked.json`)."""

    TYPE_NAME = "components.CheckedData"
