"""A compiled pipeline's file: what it was compiled for, its tasks and its parameters."""

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
      file: where it was read from.
      job: the PipelineJob for Vertex AI; for Kubeflow empty.
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
        """The runtime parameters' definitions, by name."""
        return dict(self.spec["root"].get("inputDefinitions", {}).get("parameters", {}))


def read_package(file: Path, target: ClusterTarget) -> Package:
    """Reads a compiled pipeline: PipelineSpec YAML for Kubeflow, PipelineJob JSON for Vertex AI.

    Raises:
      InputError: there is no such file, or it is none for `target`.
    """
    make_one = f"make one with `amazon-reviews compile --target {target}`"
    try:
        text = file.read_text(encoding="utf-8")
        # A second document, where there is one, holds settings for Kubernetes.
        document = json.loads(text) if file.suffix == ".json" else next(yaml.safe_load_all(text))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror or error}; {make_one}") from None
    except (ValueError, yaml.YAMLError, StopIteration):
        raise InputError(f"{file}: no compiled pipeline, it cannot be parsed; {make_one}") from None
    job = document if isinstance(document, dict) and "pipelineSpec" in document else {}
    spec = job.get("pipelineSpec") or document
    if not isinstance(spec, dict) or not isinstance(spec.get("root"), dict):
        raise InputError(f"{file}: no compiled pipeline, it has no `root`; {make_one}")
    if bool(job) != (target == "vertex"):
        made_for = "Vertex AI" if job else "Kubeflow"
        raise InputError(f"{file}: compiled for {made_for}; {make_one}")
    return Package(file, job, spec)


_TYPES: dict[str, tuple[type, str]] = {
    "STRING": (str, "text"),
    "NUMBER_INTEGER": (int, "an integer"),
    "NUMBER_DOUBLE": (float, "a number"),
}


def converted_values(package: Package, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The given values in the types that the pipeline declares; numbers may be given as text.

    Raises:
      ConfigError: the pipeline has no such parameter, the value is of another type, or one that has
        no default got no value.
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
            values[name] = _converted(value, types[name][0])
        except (TypeError, ValueError):
            raise ConfigError(
                f"parameter {name}: {types[name][1]}, not {value!r}; known are {known}"
            ) from None
    for name, definition in package.parameters.items():
        if "defaultValue" not in definition and name not in values:
            raise ConfigError(f"parameter {name}: has no default, so give it a value")
    return values


def changed_values(package: Package, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `values` that are not the ones that the pipeline was compiled with."""
    definitions = package.parameters
    return {
        name: value
        for name, value in values.items()
        if definitions[name].get("defaultValue") != value
    }


def _converted(value: Any, wanted: type) -> Any:
    if wanted is str:
        if not isinstance(value, str):
            raise TypeError
        return value
    # bool is an int to Python, and int(2.5) is 2.
    if isinstance(value, bool) or not isinstance(value, str | int | wanted):
        raise TypeError
    number = wanted(value)
    if not math.isfinite(number):
        raise ValueError
    return number
