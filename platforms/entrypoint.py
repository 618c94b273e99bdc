"""The entry point of every step's container: it corrects the step's input and runs the executor.

Compiled pipelines call `python -m platforms.entrypoint --executor_class_path CLASS
--json_serialized_invocation_args INPUT --json_serialized_inputs_spec_args SPEC [Beam arguments]`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from components.properties import COMPONENT_FILE, TRACKING
from core import exit_codes
from core.code_file import CodeFile, load, located_cause
from core.errors import InputError, cause
from core.processes import large_imports
from core.storage import is_bucket, is_url
from platforms.pipeline_spec import is_changed

_PROPERTIES = ".properties.json"
"""Suffix of the file with the properties of an artifact. The suffix follows the URI of the
artifact, so the file is in no folder that a component reads."""
_LOG = logging.getLogger(__name__)


def main(arguments: Sequence[str]) -> int:
    """Run one step; return 0, 2 if the input or a setting is wrong, or 1 after another failure.

    Args:
      arguments: the arguments of the command line, see the docstring of the module.

    Raises:
      SystemExit: a required argument is missing.
    """
    parser = argparse.ArgumentParser(prog="python -m platforms.entrypoint", add_help=False)
    parser.add_argument("--executor_class_path", required=True)
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", default="{}")
    step, beam_args = parser.parse_known_args(arguments)
    name = step.executor_class_path
    executor_input = json.loads(step.json_serialized_invocation_args)
    correct_outputs(executor_input)
    try:
        check_root(executor_input)
        _execute(step, beam_args, executor_input)
    except Exception as error:
        message, code = _cause(error)
        if deleted := _deleted_input(executor_input, message):
            message, code = deleted, exit_codes.BAD_INPUT
        _track_failure(executor_input, f"{name}: {message}")
        if code == exit_codes.FAILED:
            _LOG.exception("%s failed", name)
        else:
            print(f"{name}: {message}", file=sys.stderr)
        return code
    return 0


def _execute(
    step: argparse.Namespace, beam_args: list[str], executor_input: dict[str, Any]
) -> None:
    """Run the executor of a step by the `main` of TFX, and correct its outputs."""
    with large_imports():
        from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor

    if TRACKING in os.environ:
        from components.run_report.mlflow_connection import check_client

        check_client()
    if COMPONENT_FILE in os.environ:
        # TFX imports the executor by the name of this module.
        load(CodeFile.model_validate_json(os.environ[COMPONENT_FILE]), [])
    correct_inputs(executor_input, json.loads(step.json_serialized_inputs_spec_args))
    step.json_serialized_invocation_args = json.dumps(executor_input)
    kubeflow_v2_run_executor.main((step, beam_args))
    write_properties(executor_input)
    delete_folder_markers(_output_uris(executor_input))


def check_root(executor_input: Mapping[str, Any]) -> None:
    """Check that a step can write below the pipeline root of its run.

    The root is a property of a run, and the compiled pipeline does not contain it. For a run that
    is started without one, Kubeflow sets the root of its own object store, `minio://mlpipeline`.

    Args:
      executor_input: the JSON of the launcher's ExecutorInput.

    Raises:
      InputError: neither TensorFlow nor Beam in the image can write there.
    """
    for uri in _output_uris(executor_input):
        if is_url(uri) and not is_bucket(uri):
            raise InputError(
                f"the pipeline root of this run: a step cannot write {uri}; start the run with "
                "paths.root of the settings, gs://BUCKET/FOLDER, as its pipeline root, or with "
                "`amazon-reviews submit`"
            )


def correct_inputs(executor_input: dict[str, Any], inputs_spec: Mapping[str, Any]) -> None:
    """Set the declared type and the properties of every input artifact of a step.

    Open-source Kubeflow passes inputs with an empty type or without one, and `kfp.local` passes
    Kubeflow's own `system.Artifact`. TFX cannot construct an artifact from any of these.

    A launcher may omit the properties of an artifact: the names of the splits of Examples, or
    whether a model is blessed. Without them TFX's components do nothing, and report no error. So a
    step writes the properties of its outputs to files, and the next steps read these files. A
    property that the launcher passes takes precedence.

    Args:
      executor_input: the JSON of the launcher's ExecutorInput, which is changed.
      inputs_spec: the JSON of the step's ComponentInputsSpec, with the declared types.

    Raises:
      OSError, tensorflow.errors.OpError: a file with properties cannot be read.
    """
    declared = inputs_spec.get("artifacts", {})
    for key, given in executor_input.get("inputs", {}).get("artifacts", {}).items():
        for artifact in given.get("artifacts", []):
            if key in declared:
                artifact["type"] = declared[key]["artifactType"]
            artifact["metadata"] = _properties(artifact["uri"]) | artifact.get("metadata", {})


def correct_outputs(executor_input: dict[str, Any]) -> None:
    """Set our types of the output artifacts of a step, and remove the outputs of the platform.

    `platforms.compile` declares some outputs as `system.HTML` and the like, so that the platform
    displays them. TFX cannot construct these types. The platform itself writes the outputs of its
    other types. For example, with PUBLISH_LOGS Kubeflow adds `executor-logs`, a `system.Artifact`.

    Args:
      executor_input: the JSON of the launcher's ExecutorInput, which is changed.
    """
    from components.artifacts import SYSTEM_TYPES

    own = {
        system: {"instanceSchema": f"title: {name}\ntype: object\n"}
        for name, system in SYSTEM_TYPES.items()
    }
    outputs = executor_input.get("outputs", {}).get("artifacts", {})
    for key, given in list(outputs.items()):
        for artifact in given.get("artifacts", []):
            title = artifact.get("type", {}).get("schemaTitle", "")
            if title in own:
                artifact["type"] = own[title]
            elif title.startswith("system."):
                outputs.pop(key, None)


def write_properties(executor_input: Mapping[str, Any]) -> None:
    """Write the properties of each output artifact of a step that has succeeded.

    The launcher does not get the properties whose text it cannot pass to a later step, such as the
    names of classes with `$$`. The later steps read them from the file.

    Args:
      executor_input: the JSON of the launcher's ExecutorInput.

    Raises:
      OSError, tensorflow.errors.OpError: a file cannot be read or written.
    """
    from tfx.dsl.io import fileio

    output_file = executor_input["outputs"]["outputFile"]
    if not fileio.exists(output_file):
        return
    with fileio.open(output_file, "r") as file:
        output = json.loads(file.read())
    for given in output.get("artifacts", {}).values():
        for artifact in given["artifacts"]:
            if properties := artifact.get("metadata"):
                with fileio.open(artifact["uri"].rstrip("/") + _PROPERTIES, "w") as file:
                    file.write(json.dumps(properties))
                artifact["metadata"] = {
                    name: value
                    for name, value in properties.items()
                    if not (isinstance(value, str) and is_changed(value))
                }
    with fileio.open(output_file, "w") as file:
        file.write(json.dumps(output))


def _properties(uri: str) -> dict[str, Any]:
    from tfx.dsl.io import fileio

    path = uri.rstrip("/") + _PROPERTIES
    if not fileio.exists(path):
        return {}
    with fileio.open(path, "r") as file:
        metadata: dict[str, Any] = json.loads(file.read())
    return metadata


def delete_folder_markers(uris: Sequence[str]) -> None:
    """Delete the empty objects under gs:// prefixes whose name ends in a slash.

    TensorFlow creates such an object for every folder. The launcher of the next step would fail to
    download the object as a file.

    Args:
      uris: the URIs of artifacts. Those outside of gs:// are ignored.

    Raises:
      google.api_core.exceptions.GoogleAPICallError, google.auth.exceptions.GoogleAuthError: a
        bucket cannot be listed, or an object cannot be deleted.
    """
    remote = [uri for uri in uris if is_bucket(uri)]
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


def _output_uris(executor_input: Mapping[str, Any]) -> list[str]:
    """Return the URIs of the output artifacts of a step."""
    # The JSON omits empty maps, such as the output artifacts of a component that has none.
    outputs = executor_input.get("outputs", {}).get("artifacts", {})
    return [artifact["uri"] for given in outputs.values() for artifact in given["artifacts"]]


def _cause(error: Exception) -> tuple[str, int]:
    """Return the cause of a failed step in one line, and the exit code."""
    if isinstance(error, ValidationError):
        line = (
            "the image contains another version of the code than the compiled pipeline; build the "
            f"image and compile again ({' '.join(str(error).split())})"
        )
        return line, exit_codes.BAD_INPUT
    return located_cause(error), getattr(error, "exit_code", exit_codes.FAILED)


def _deleted_input(executor_input: Mapping[str, Any], message: str) -> str:
    """Return the error about an input artifact without files, which an error of a step names.

    A cache hit passes on the artifacts of an earlier run, whether or not their files exist. A run
    without the cache adds nothing to the cache.

    Args:
      executor_input: the JSON of the launcher's ExecutorInput.
      message: the error of the step.

    Returns:
      An error in one line; empty if the step failed for another reason.
    """
    from tfx.dsl.io import fileio

    for key, given in executor_input.get("inputs", {}).get("artifacts", {}).items():
        for artifact in given.get("artifacts", []):
            uri = artifact["uri"].rstrip("/")
            try:
                is_deleted = uri in message and not fileio.exists(uri)
            except Exception:  # The bucket does not respond, or denies access.
                return ""
            if is_deleted:
                return (
                    f"{uri}: the files of the input {key} were deleted, and the cache reuses the "
                    "run that wrote them; submit with --set cache=false until the input files or "
                    "cluster.image change"
                )
    return ""


def _track_failure(executor_input: Mapping[str, Any], failure: str) -> None:
    """Send the failure of the run to MLflow, if its runs are sent there.

    An error of MLflow is only a warning in the log, because it must not replace the step's failure.
    """
    try:
        _send_failure(executor_input, failure)
    except Exception as error:
        _LOG.warning("tracking.mlflow: the failure of this run was not sent: %s", cause(error))


def _send_failure(executor_input: Mapping[str, Any], failure: str) -> None:
    from components.run_report.content import collect
    from components.run_report.history import Run
    from components.run_report.tracking import from_environment, run_id_from_output, track

    sent_to = from_environment()
    if not sent_to:
        return
    uris = _output_uris(executor_input)
    output_file = executor_input.get("outputs", {}).get("outputFile", "")
    # On Vertex AI this file is beside the outputs. On Kubeflow it is in a local folder of the pod,
    # whose path does not contain the id of the run.
    if is_bucket(output_file):
        uris.append(output_file)
    if not uris:
        raise InputError("the step has no output artifact, whose URI would contain the run's id")
    track(sent_to, collect(Run(sent_to.name, run_id_from_output(uris[0]), error=failure)))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    # All outputs are complete here. Libraries of TFX can crash while the interpreter unloads them,
    # and Kubeflow would then report a failed step.
    os._exit(code)
