"""The artifact types of our components.

TFX requires that the TYPE_NAME of a type in a compiled pipeline is an import path: a package of at
most 21 characters, a dot, and the class. See `components.__getattr__`.
"""

from __future__ import annotations

from tfx import types


class RejectedLines(types.Artifact):
    """The rejected lines (`lines*.jsonl`), and the counts of all lines in total (`summary.json`)
    and for each file (`files.jsonl`). The total counts are custom properties too. The custom
    property `reading` contains the format, the columns and the scale of the labels."""

    TYPE_NAME = "components.RejectedLines"


class Report(types.Artifact):
    """An HTML page about the run (`report.html`), which requires no other file."""

    TYPE_NAME = "components.Report"


class KeyFigures(types.Artifact):
    """The metrics of the candidate as custom properties, which the UI of a cluster displays."""

    TYPE_NAME = "components.KeyFigures"


class Classification(types.Artifact):
    """The ROC curve and the confusion matrix as custom properties, which the UI of a cluster
    displays."""

    TYPE_NAME = "components.Classification"


SYSTEM_TYPES = {
    Report.TYPE_NAME: "system.HTML",
    KeyFigures.TYPE_NAME: "system.Metrics",
    Classification.TYPE_NAME: "system.ClassificationMetrics",
}
"""Artifact type -> the system type that the UI of Kubeflow Pipelines and Vertex AI displays."""


class ProjectOutput(types.Artifact):
    """The output of a component of a user's project, in files of any form."""

    TYPE_NAME = "components.ProjectOutput"


class CheckedData(types.Artifact):
    """The record that every split of a data set fits the schema (`checked.json`)."""

    TYPE_NAME = "components.CheckedData"
