"""The file of a compiled pipeline: its target, its tasks and its parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.errors import ConfigError, InputError
from platforms.checks import ClusterTarget


@dataclass(frozen=True)
class Package:
    """A compiled pipeline.

    Attributes:
      file: the path of the file.
      job: the PipelineJob for Vertex AI; empty for Kubeflow.
      spec: the PipelineSpec.
    """

    file: Path
    job: dict[str, Any]
    spec: dict[str, Any]

    @property
    def task_names(self) -> list[str]:
        """The names of the pipeline's tasks."""
        return list(self.spec["root"].get("dag", {}).get("tasks", {}))

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The definitions of the runtime parameters, by name."""
        return dict(self.spec["root"].get("inputDefinitions", {}).get("parameters", {}))


def read_package(file: Path, target: ClusterTarget) -> Package:
    """Read a compiled pipeline: PipelineSpec YAML for Kubeflow, PipelineJob JSON for Vertex AI.

    Raises:
      InputError: the file is missing, or it is not a compiled pipeline for `target`.
    """
    remedy = f"create one with `amazon-reviews compile --target {target}`"
    try:
        text = file.read_text(encoding="utf-8")
        # A second document contains settings for Kubernetes.
        document = json.loads(text) if file.suffix == ".json" else next(yaml.safe_load_all(text))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}; {remedy}") from None
    except (ValueError, yaml.YAMLError, StopIteration):
        raise InputError(
            f"{file}: not a compiled pipeline, it cannot be parsed; {remedy}"
        ) from None
    job = document if isinstance(document, dict) and "pipelineSpec" in document else {}
    spec = job.get("pipelineSpec") or document
    if not isinstance(spec, dict) or not isinstance(spec.get("root"), dict):
        raise InputError(f"{file}: not a compiled pipeline, it has no `root`; {remedy}")
    if bool(job) != (target == "vertex"):
        compiled_for = "Vertex AI" if job else "Kubeflow"
        raise InputError(f"{file}: compiled for {compiled_for}, not for {target}; {remedy}")
    return Package(file, job, spec)


_TYPES: dict[str, tuple[type, str]] = {
    "STRING": (str, "text"),
    "NUMBER_INTEGER": (int, "an integer"),
    "NUMBER_DOUBLE": (float, "a number"),
}


def converted_values(package: Package, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in the types that the pipeline declares; numbers may be given as text.

    Raises:
      ConfigError: the pipeline has no such parameter, a value is of another type, or a parameter
        without a default has no value.
    """
    types = {
        name: _TYPES[definition["parameterType"]] for name, definition in package.parameters.items()
    }
    known = ", ".join(f"{name} ({words})" for name, (_, words) in sorted(types.items()))
    values = {}
    for name, value in parameters.items():
        if name not in types:
            raise ConfigError(
                f"parameter {name}: the pipeline has no such parameter; known are {known}"
            )
        try:
            values[name] = _convert(value, types[name][0])
        except (TypeError, ValueError):
            raise ConfigError(
                f"parameter {name}: must be {types[name][1]}, not {value!r}; known are {known}"
            ) from None
    for name, definition in package.parameters.items():
        if "defaultValue" not in definition and name not in values:
            raise ConfigError(f"parameter {name}: has no default; set --parameter {name}=VALUE")
    return values


def changed_values(package: Package, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the defaults of the compiled pipeline."""
    definitions = package.parameters
    return {
        name: value
        for name, value in values.items()
        if definitions[name].get("defaultValue") != value
    }


def _convert(value: Any, type_: type) -> Any:
    if type_ is str:
        if not isinstance(value, str):
            raise TypeError
        return value
    # In Python a bool is an int, and int(2.5) is 2.
    if isinstance(value, bool) or not isinstance(value, str | int | type_):
        raise TypeError
    number = type_(value)
    if not math.isfinite(number):
        raise ValueError
    return number
