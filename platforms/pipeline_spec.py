"""The JSON of a compiled pipeline, and the tasks in it; this module imports no TFX."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import ConfigError

_REPLACED = re.compile(r"\$[$(]")
"""What Kubernetes replaces in arguments: `$$` by a dollar, and `$(NAME)` by a variable."""


def tasks_of(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return node id -> JSON of its task, which is a part of a pipeline spec.

    Args:
      spec: the PipelineSpec of a compiled pipeline.
    """
    tasks: dict[str, dict[str, Any]] = spec["root"]["dag"]["tasks"]
    return tasks


def escape_dollars(value: str) -> str:
    """Return JSON of the same value without dollars.

    Kubernetes replaces `$$` and `$(NAME)` in the arguments and the environment variables of a
    container. In JSON a dollar is always a part of a string.

    Args:
      value: the JSON.
    """
    return value.replace("$", "\\u0024")


def escape_parameters(name: str, task: Mapping[str, Any]) -> None:
    """Escape the dollars in the parameters of a task that are objects or arrays of JSON.

    Kubeflow passes the parameters as arguments of containers.

    Args:
      name: the name of the task.
      task: the JSON of the task, which is changed.

    Raises:
      ConfigError: another parameter has characters that Kubernetes replaces.
    """
    for key, parameter in task.get("inputs", {}).get("parameters", {}).items():
        value = parameter.get("runtimeValue", {}).get("constant")
        if not isinstance(value, str):
            continue
        if _has_members(value):
            parameter["runtimeValue"]["constant"] = escape_dollars(value)
        elif _REPLACED.search(value):
            raise ConfigError(
                f"{value[:200]!r}, the parameter {key} of the step {name}, contains $$ or $(, "
                "which Kubernetes replaces; write it without them"
            )


def _has_members(value: str) -> bool:
    try:
        return isinstance(json.loads(value), dict | list)
    except ValueError:
        return False


@dataclass(frozen=True)
class CompiledPipeline:
    """A compiled pipeline that is submitted to a cluster.

    Attributes:
      document: the JSON that the cluster requires.
      tasks: node id -> JSON of its task, which is a part of `document`. A change applies to both.
    """

    document: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
