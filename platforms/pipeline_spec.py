"""The JSON of a compiled pipeline, and the tasks in it; this module imports no TFX."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import ConfigError

REPLACED = re.compile(r"\$[$(]|\{\{")
"""The beginning of what a cluster replaces in the arguments of a step. Kubernetes replaces `$$` and
`$(NAME)`, and Argo Workflows of Kubeflow Pipelines replaces `{{NAME}}` and `{{=EXPRESSION}}`."""
_BROKEN = r"[\x7f\U00010000-\U0010ffff]"
"""The characters that perhaps end a run. Argo Workflows writes values by strconv.Quote of Go, whose
`\\x7f`, and `\\U000e0067` of a flag or of an emoji that Go does not know yet, are no valid JSON."""
_ESCAPED = re.compile(rf"\$|(?<=\{{)\{{|{_BROKEN}")


def tasks_of(spec: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return node id -> JSON of its task, which is a part of a pipeline spec.

    Args:
      spec: the PipelineSpec of a compiled pipeline.
    """
    tasks: dict[str, dict[str, Any]] = spec["root"]["dag"]["tasks"]
    return tasks


def is_changed(text: str) -> bool:
    """Return whether a cluster may change a text in the arguments of a step.

    Args:
      text: the text, which is not escaped.
    """
    return bool(REPLACED.search(text) or re.search(_BROKEN, text))


def escape(value: str) -> str:
    """Return JSON of the same value that reaches the container of a step without a change.

    Kubernetes and Argo Workflows replace what `REPLACED` describes in the arguments and the
    environment variables of a container. In JSON these characters are always parts of strings.

    Args:
      value: the JSON.
    """
    return _ESCAPED.sub(lambda found: _escaped(found[0]), value)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def escape_parameters(name: str, task: Mapping[str, Any]) -> None:
    """Escape the parameters of a task that are objects or arrays of JSON.

    Kubeflow passes the parameters as arguments of containers.

    Args:
      name: the name of the task.
      task: the JSON of the task, which is changed.

    Raises:
      ConfigError: another parameter has characters that a cluster replaces.
    """
    for key, parameter in task.get("inputs", {}).get("parameters", {}).items():
        value = parameter.get("runtimeValue", {}).get("constant")
        if not isinstance(value, str):
            continue
        if _has_members(value):
            parameter["runtimeValue"]["constant"] = escape(value)
        elif REPLACED.search(value):
            raise ConfigError(
                f"{value[:200]!r}, the parameter {key} of the step {name}, contains $$, $( or "
                "{{, which a cluster replaces; write it without them"
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
