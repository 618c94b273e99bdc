"""The submission of a compiled pipeline to a cluster: its file, its parameters, its run."""

from __future__ import annotations

import json
import math
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

from core import exit_codes
from core.errors import ConfigError, InputError
from core.overrides import split_pair
from pipeline.config import PipelineConfig
from platforms.checks import ClusterTarget, check_endpoint, cluster_name
from platforms.follow import PATIENCE_SECONDS, POLL_SECONDS, Report, SubmitError, follow
from platforms.parameters import check_parameters
from platforms.targets import check_target

_RUN_NAME = re.compile(r"(.+)-\d{8}-\d{6}-[0-9a-f]{4}")


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


def submit(
    config: PipelineConfig,
    target: ClusterTarget,
    package: Path,
    parameters: Mapping[str, Any],
    wait: bool,
    report: Report,
    *,
    poll_seconds: float = POLL_SECONDS,
    patience_seconds: float = PATIENCE_SECONDS,
) -> int:
    """Submit `package` once, report the run's name and link, and follow the run if `wait`.

    Args:
      config: the settings of the cluster, and those that the pipeline was compiled with.
      target: the platform of the cluster.
      package: the file that `amazon-reviews compile` wrote for `target`.
      parameters: values of the pipeline's runtime parameters, in their declared types or as text.
      wait: True to return after the end of the run.
      report: gets one line at a time.
      poll_seconds, patience_seconds: see `follow`.

    Returns:
      0 if the run was submitted and, with `wait`, succeeded. 1 if the cluster refused the run, if
      the run failed or was cancelled, or if its status cannot be read any more. 130 after Ctrl-C,
      which does not stop the run.

    Raises:
      ConfigError: a setting or parameter is missing or wrong, or there are no credentials.
      InputError: `package` is not a compiled pipeline for `target`, or a parameter has a value that
        the settings do not allow.
    """
    compiled, values, name = prepare(config, target, package, parameters)
    try:
        run = client_of(target).start(config, compiled, values, name)
    except SubmitError as error:
        report(str(error))
        return exit_codes.FAILED
    except KeyboardInterrupt:
        report(
            f"interrupted; it is unknown whether {name} was submitted, check the cluster before a "
            "retry"
        )
        return exit_codes.INTERRUPTED
    report(f"submitted {run.name}")
    report(run.link)
    if not wait:
        return exit_codes.PUSHED
    return follow(run, compiled.task_names, report, poll_seconds, patience_seconds)


def prepare(
    config: PipelineConfig, target: ClusterTarget, package: Path, parameters: Mapping[str, Any]
) -> tuple[Package, dict[str, Any], str]:
    """Check a submission; return the package, the values of its parameters, and a unique name.

    Args and Raises: see `submit`.
    """
    check_submission(config, target)
    compiled = read_package(package, target)
    values = converted_values(compiled, parameters)
    check_parameters(config, target, changed_values(compiled, values))
    return compiled, values, run_name(cluster_name(config))


def client_of(target: ClusterTarget) -> Any:
    """Return the module with `start` and the functions for schedules.

    Each module imports a client library, which takes seconds.
    """
    return import_module(f"platforms.{target}.client")


def check_submission(config: PipelineConfig, target: ClusterTarget) -> None:
    """Check the settings of a submission before the pipeline is compiled, which takes a while.

    Raises:
      ConfigError: a setting is missing or wrong, or there are no credentials.
    """
    check_target(config, target)
    if target == "vertex":
        client_of(target).connect(config)
    else:
        check_endpoint(config)


def read_parameters(texts: Sequence[str]) -> dict[str, str]:
    """Return the names and values of parameters: `["epochs=3"]` -> `{"epochs": "3"}`.

    Raises:
      ConfigError: a text is not NAME=VALUE.
    """
    return dict(split_pair(text, "--parameter", "epochs=3") for text in texts)


def run_name(pipeline: str) -> str:
    """Return a unique name for a run, of at most 128 characters: it is the id on Vertex AI."""
    return f"{pipeline[:100]}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"


def pipeline_of(run: str) -> str:
    """Return the pipeline in the name of a run, at most 100 characters; empty: not such a name."""
    found = _RUN_NAME.fullmatch(run)
    return found[1] if found else ""


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
