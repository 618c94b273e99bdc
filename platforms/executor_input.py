"""The ExecutorInput that a launcher passes to a step: its corrections, its checks and its files."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from core.errors import InputError
from core.storage import is_bucket, is_url
from platforms.pipeline_spec import is_changed

_PROPERTIES = ".properties.json"
"""Suffix of the file with the properties of an artifact. The suffix follows the URI of the
artifact, so the file is in no folder that a component reads."""
_LOG = logging.getLogger(__name__)


def output_uris(executor_input: Mapping[str, Any]) -> list[str]:
    """Return the URIs of the output artifacts of a step.

    Args:
      executor_input: the JSON of the launcher's ExecutorInput.
    """
    # The JSON omits empty maps, such as the output artifacts of a component that has none.
    outputs = executor_input.get("outputs", {}).get("artifacts", {})
    return [artifact["uri"] for given in outputs.values() for artifact in given["artifacts"]]


def check_root(executor_input: Mapping[str, Any]) -> None:
    """Check that a step can write below the pipeline root of its run.

    The root is a property of a run, and the compiled pipeline does not contain it. For a run that
    is started without one, Kubeflow sets the root of its own object store, `minio://mlpipeline`.

    Args:
      executor_input: the JSON of the launcher's ExecutorInput.

    Raises:
      InputError: neither TensorFlow nor Beam in the image can write there.
    """
    for uri in output_uris(executor_input):
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


def deleted_input(executor_input: Mapping[str, Any], message: str) -> str:
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


def _properties(uri: str) -> dict[str, Any]:
    from tfx.dsl.io import fileio

    path = uri.rstrip("/") + _PROPERTIES
    if not fileio.exists(path):
        return {}
    with fileio.open(path, "r") as file:
        metadata: dict[str, Any] = json.loads(file.read())
    return metadata
