"""The entry point of every step's container, which corrects Kubeflow's input and runs the executor.

Compiled pipelines call `python -m platforms.entrypoint --executor_class_path CLASS
--json_serialized_invocation_args INPUT --json_serialized_inputs_spec_args SPEC [Beam arguments]`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import runpy
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from core import exit_codes
from core.errors import InputError, UserError
from platforms.parameters import check_run

_TFX_MODULE = "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"
_INPUT, _SPEC = "--json_serialized_invocation_args", "--json_serialized_inputs_spec_args"
_PACKAGES = ("amazon-reviews", "tfx", "tensorflow", "tf_keras", "apache-beam", "kfp")
_PROPERTIES = ".properties.json"
"""Follows the URI of an artifact, so the file is in no folder that a component reads."""
_LOG = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run one step; return 0, 2 if the input or a setting is wrong, or 1 after another failure."""
    parser = argparse.ArgumentParser(prog="python -m platforms.entrypoint", add_help=False)
    parser.add_argument("--executor_class_path", required=True)
    parser.add_argument(_INPUT, required=True)
    parser.add_argument(_SPEC, default="{}")
    step, beam_args = parser.parse_known_args(arguments)
    inputs_spec = json.loads(step.json_serialized_inputs_spec_args)
    executor_input = with_own_types(
        with_declared_types(json.loads(step.json_serialized_invocation_args), inputs_spec)
    )
    try:
        check_run(executor_input)
        _log_environment(step.executor_class_path, executor_input)
        check_integers(executor_input, inputs_spec)
        sys.argv = [
            _TFX_MODULE,
            *("--executor_class_path", step.executor_class_path),
            *(_INPUT, json.dumps(with_properties(executor_input))),
            *(_SPEC, step.json_serialized_inputs_spec_args),
            *writable_setup_file(beam_args),
        ]
        runpy.run_module(_TFX_MODULE, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code not in (None, 0):
            return end.code if isinstance(end.code, int) else exit_codes.FAILED
    except Exception as error:
        _track_failure(executor_input, f"{step.executor_class_path}: {error}")
        if isinstance(error, UserError):
            print(f"{step.executor_class_path}: {error}", file=sys.stderr)
            return error.exit_code
        _LOG.exception("%s failed", step.executor_class_path)
        return exit_codes.FAILED
    write_properties(executor_input)
    delete_folder_markers(_output_uris(executor_input))
    return 0


def with_declared_types(
    executor_input: Mapping[str, Any], inputs_spec: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the ExecutorInput, with the declared type of the component for every input artifact.

    Open-source Kubeflow passes inputs with an empty type or without one, and `kfp.local` passes
    Kubeflow's own `system.Artifact`. TFX cannot construct an artifact from any of these.

    Args:
      executor_input: JSON of a `pipeline_spec.ExecutorInput`.
      inputs_spec: JSON of the `pipeline_spec.ComponentInputsSpec`; with schema 2.1 only.
    """
    declared = {
        name: artifact["artifactType"]
        for name, artifact in inputs_spec.get("artifacts", {}).items()
    }
    inputs = dict(executor_input.get("inputs", {}))
    inputs["artifacts"] = {
        name: {
            **given,
            "artifacts": [
                {**artifact, "type": declared.get(name, artifact.get("type"))}
                for artifact in given.get("artifacts", [])
            ],
        }
        for name, given in inputs.get("artifacts", {}).items()
    }
    return {**executor_input, "inputs": inputs}


def with_own_types(executor_input: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ExecutorInput, with our outputs alone, and our types in place of the platform's.

    `platforms.compile` declares some outputs as `system.HTML` and the like, so that the platform
    shows them. TFX cannot construct these types. Outputs of other types of the platform are its
    own: with PUBLISH_LOGS, Kubeflow adds `executor-logs`, a `system.Artifact`, and writes it.
    """
    from components.artifacts import SYSTEM_TYPES

    own = {system: name for name, system in SYSTEM_TYPES.items()}

    def title(artifact: Mapping[str, Any]) -> str:
        return str(artifact.get("type", {}).get("schemaTitle", ""))

    def is_ours(artifact: Mapping[str, Any]) -> bool:
        return title(artifact) in own or not title(artifact).startswith("system.")

    def changed(artifact: Mapping[str, Any]) -> dict[str, Any]:
        name = own.get(title(artifact))
        if name is None:
            return dict(artifact)
        return {**artifact, "type": {"instanceSchema": f"title: {name}\ntype: object\n"}}

    outputs = dict(executor_input.get("outputs", {}))
    outputs["artifacts"] = {
        key: {**given, "artifacts": [changed(artifact) for artifact in given["artifacts"]]}
        for key, given in outputs.get("artifacts", {}).items()
        if all(map(is_ours, given["artifacts"]))
    }
    return {**executor_input, "outputs": outputs}


def with_properties(executor_input: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ExecutorInput, with the written properties of every input artifact.

    A launcher may pass an artifact to the next step without its properties: the names of the splits
    of Examples, or whether a model is blessed. Without them TFX's components do nothing, and report
    no error. So a step writes the properties of its outputs, and reads those of its inputs. A
    property that the launcher passes takes precedence.

    Args:
      executor_input: JSON of a `pipeline_spec.ExecutorInput`.
    """
    inputs = dict(executor_input.get("inputs", {}))
    inputs["artifacts"] = {
        key: {
            **given,
            "artifacts": [
                {
                    **artifact,
                    "metadata": {**_properties(artifact["uri"]), **artifact.get("metadata", {})},
                }
                for artifact in given.get("artifacts", [])
            ],
        }
        for key, given in inputs.get("artifacts", {}).items()
    }
    return {**executor_input, "inputs": inputs}


def write_properties(executor_input: Mapping[str, Any]) -> None:
    """Write the properties of each output artifact of a step that has succeeded.

    Args:
      executor_input: JSON of the step's `pipeline_spec.ExecutorInput`.
    """
    from tfx.dsl.io import fileio

    output_file = executor_input["outputs"]["outputFile"]
    if not fileio.exists(output_file):
        return
    with fileio.open(output_file, "r") as file:
        outputs = json.loads(file.read()).get("artifacts", {})
    for given in outputs.values():
        for artifact in given["artifacts"]:
            if artifact.get("metadata"):
                with fileio.open(artifact["uri"].rstrip("/") + _PROPERTIES, "w") as file:
                    file.write(json.dumps(artifact["metadata"]))


def _properties(uri: str) -> dict[str, Any]:
    from tfx.dsl.io import fileio

    path = uri.rstrip("/") + _PROPERTIES
    if not fileio.exists(path):
        return {}
    with fileio.open(path, "r") as file:
        metadata: dict[str, Any] = json.loads(file.read())
    return metadata


def check_integers(executor_input: Mapping[str, Any], inputs_spec: Mapping[str, Any]) -> None:
    """Check that parameters declared as integers are integers, because TFX truncates 2.5 to 2.

    Args:
      executor_input, inputs_spec: see `with_declared_types`.

    Raises:
      InputError: a parameter is not an integer.
    """
    values = executor_input.get("inputs", {}).get("parameterValues", {})
    for name, definition in inputs_spec.get("parameters", {}).items():
        if definition.get("parameterType") == "NUMBER_INTEGER" and name in values:
            value = values[name]
            try:
                whole = not isinstance(value, bool) and float(value).is_integer()
            except (TypeError, ValueError):
                whole = False
            if not whole:
                raise InputError(f"parameter {name}: must be an integer, not {value!r}")


def writable_setup_file(beam_args: Sequence[str]) -> list[str]:
    """Return Beam's arguments with `--setup_file` in a copy of its folder if that is read-only.

    Beam builds the package for Dataflow in that folder, and the root file system of a container
    may be read-only.
    """
    changed = []
    for argument in beam_args:
        name, _, file = argument.partition("=")
        folder = os.path.dirname(file)
        if name == "--setup_file" and os.path.isdir(folder) and not os.access(folder, os.W_OK):
            copy = os.path.join(tempfile.mkdtemp(prefix="setup-"), "package")
            shutil.copytree(folder, copy)
            argument = f"{name}={os.path.join(copy, os.path.basename(file))}"
        changed.append(argument)
    return changed


def delete_folder_markers(uris: Sequence[str]) -> None:
    """Delete the empty objects under gs:// prefixes whose name ends in a slash.

    TensorFlow creates such an object for every folder. The launcher of the next step would fail to
    download the object as a file.
    """
    remote = [uri for uri in uris if uri.startswith("gs://")]
    if not remote:
        return
    from google.cloud import storage

    client = storage.Client()
    for uri in remote:
        bucket, _, prefix = uri.removeprefix("gs://").partition("/")
        for blob in client.list_blobs(bucket, prefix=prefix):
            if blob.name.endswith("/") and blob.size == 0:
                blob.delete()
                _LOG.info("Deleted the folder marker gs://%s/%s", bucket, blob.name)


def _track_failure(executor_input: Mapping[str, Any], failure: str) -> None:
    """Record the failure of the run in MLflow, if its runs are sent there."""
    from components.run_report import tracking
    from components.run_report.history import Sources

    sent_to = tracking.from_environment()
    if sent_to:
        run_id = tracking.run_of_output(_output_uris(executor_input)[0])
        sources = Sources(sent_to.name, run_id, failure=failure.splitlines()[0])
        tracking.track(sent_to, tracking.collect(sources))


def _output_uris(executor_input: Mapping[str, Any]) -> list[str]:
    outputs = executor_input.get("outputs", {}).get("artifacts", {})
    return [artifact["uri"] for given in outputs.values() for artifact in given["artifacts"]]


def _log_environment(executor: str, executor_input: Mapping[str, Any]) -> None:
    versions = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    _LOG.info("%s on Python %s: %s", executor, platform.python_version(), versions)
    strategy = executor_input["inputs"].get("parameterValues", {}).get("strategy")
    if strategy is not None:
        _LOG.info("training.strategy %s, TF_CONFIG %s", strategy, os.environ.get("TF_CONFIG", "-"))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "-"


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # All outputs are complete here. Libraries of TFX can crash while the interpreter unloads them,
    # and Kubeflow would then report a failed step.
    os._exit(code)
