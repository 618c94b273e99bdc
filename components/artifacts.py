"""The artifact types that TFX does not have.

Their TYPE_NAMEs are import paths, as TFX wants it of types in compiled pipelines: a package of at
most 21 characters, a dot, the class. See `components.__getattr__`.
"""

from __future__ import annotations

from tfx import types


class RejectedLines(types.Artifact):
    """The lines that did not become Examples (`lines*.jsonl`) and the counts of all that was
    read (`summary.json`, also as custom properties)."""

    TYPE_NAME = "components.RejectedLines"


class CheckedData(types.Artifact):
    """Says that every split of a data set fitted the schema (`checked.json`)."""

    TYPE_NAME = "components.CheckedData"
