"""The JSON of a compiled pipeline, and the tasks in it; this module imports no TFX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def tasks_of(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return node id -> JSON of its task, which is a part of a pipeline spec.

    Args:
      spec: the PipelineSpec of a compiled pipeline.
    """
    tasks: dict[str, dict[str, Any]] = spec["root"]["dag"]["tasks"]
    return tasks


@dataclass(frozen=True)
class CompiledPipeline:
    """A compiled pipeline that is submitted to a cluster.

    Attributes:
      document: the JSON that the cluster requires.
      tasks: node id -> JSON of its task, which is a part of `document`. A change applies to both.
    """

    document: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
