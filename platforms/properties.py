"""The properties of artifacts, in a file beside each artifact.

A launcher may pass an artifact to the next step without its properties: the names of the splits of
Examples, or whether a model is blessed. Without them TFX's components do nothing, and report no
error. So a step writes the properties of its outputs, and reads those of its inputs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

SUFFIX = ".properties.json"
"""Follows the URI of the artifact, so the file is in no folder that a component reads."""


def with_properties(executor_input: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ExecutorInput, with the written properties of every input artifact.

    A property that the launcher passes takes precedence.

    Args:
      executor_input: JSON of a `pipeline_spec.ExecutorInput`.
    """
    inputs = dict(executor_input.get("inputs", {}))
    inputs["artifacts"] = {
        key: {
            **given,
            "artifacts": [
                {**artifact, "metadata": {**_read(artifact["uri"]), **artifact.get("metadata", {})}}
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
                with fileio.open(artifact["uri"].rstrip("/") + SUFFIX, "w") as file:
                    file.write(json.dumps(artifact["metadata"]))


def _read(uri: str) -> dict[str, Any]:
    from tfx.dsl.io import fileio

    path = uri.rstrip("/") + SUFFIX
    if not fileio.exists(path):
        return {}
    with fileio.open(path, "r") as file:
        metadata: dict[str, Any] = json.loads(file.read())
    return metadata
