"""Executor of PushedBaseline: copies the pushed model that a candidate is compared with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from absl import logging
from tfx import types
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.utils import io_utils, path_utils

from core.errors import InputError
from serving.versions import is_complete, versions

CANDIDATE_KEY = "candidate"
MODEL_KEY = "model"
SERVING_DIR_KEY = "serving_dir"
MODEL_DIR_KEY = "model_dir"
# A file with hashes of graph and weights, which TensorFlow writes to every SavedModel.
_FINGERPRINT = "fingerprint.pb"


class Executor(base_executor.BaseExecutor):
    """Copies a SavedModel to the artifact, or leaves the artifact without a model."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor.

        Raises:
          InputError: `evaluation.baseline_model` is set, and there is no SavedModel.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        [model] = output_dict[MODEL_KEY]
        candidates = input_dict.get(CANDIDATE_KEY, [])
        own = _fingerprint(path_utils.serving_model_path(candidates[0].uri)) if candidates else None
        found = _find(exec_properties, own)
        fileio.makedirs(model.uri)
        if found is None:
            logging.info("No model was pushed before: the evaluation has no baseline")
            return
        logging.info("Baseline: %s", found)
        io_utils.copy_dir(found, path_utils.serving_model_dir(model.uri))


def without_missing_model(
    input_dict: Mapping[str, list[types.Artifact]], key: str
) -> dict[str, list[types.Artifact]]:
    """Return `input_dict` without the input `key` if PushedBaseline found no model.

    A step of Kubeflow Pipelines must write all of its outputs, but TFX's own components require
    that a missing input is absent.
    """
    models = input_dict.get(key)
    if models and not fileio.exists(
        path_utils.serving_model_path(artifact_utils.get_single_uri(models))
    ):
        return {name: artifacts for name, artifacts in input_dict.items() if name != key}
    return dict(input_dict)


def _find(exec_properties: Mapping[str, Any], own: bytes | None) -> str | None:
    set_by_user = exec_properties.get(MODEL_DIR_KEY)
    if set_by_user:
        if not is_complete(set_by_user):
            raise InputError(f"evaluation.baseline_model: no SavedModel in {set_by_user}")
        return str(set_by_user)
    for path in versions(exec_properties[SERVING_DIR_KEY]):
        # A retried step must not compare the candidate with its own pushed copy.
        if own is None or _fingerprint(path) != own:
            return path
    return None


def _fingerprint(model: str) -> bytes | None:
    path = os.path.join(model, _FINGERPRINT)
    if not fileio.exists(path):
        return None  # A TensorFlow older than 2.12 saved the model.
    with fileio.open(path, "rb") as file:
        content: bytes = file.read()
    return content
