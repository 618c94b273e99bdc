"""The artifact types of this package's components.

For types in compiled pipelines TFX requires a TYPE_NAME that is an import path: a package of at
most 21 characters, a dot, the class. See `components.__getattr__`.
"""

from __future__ import annotations

from tfx import types


class RejectedLines(types.Artifact):
    """The lines that did not become Examples (`lines*.jsonl`), and the counts of all lines:
    in total (`summary.json` and custom properties) and for each file (`files.jsonl`)."""

    TYPE_NAME = "components.RejectedLines"


class Report(types.Artifact):
    """An HTML page on the run (`report.html`), which needs no other file."""

    TYPE_NAME = "components.Report"


class CheckedData(types.Artifact):
    """A record that every split of a data set fits the schema (`checked.json`)."""

    TYPE_NAME = "components.CheckedData"
