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
# TensorFlow writes it into every SavedModel: hashes of the graph and of the weights.
_FINGERPRINT = "fingerprint.pb"


class Executor(base_executor.BaseExecutor):
    """Copies a SavedModel into the artifact, or leaves the artifact without one."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor.

        Raises:
          InputError: `evaluation.baseline_model` is set and no SavedModel is there.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        [model] = output_dict[MODEL_KEY]
        candidates = input_dict.get(CANDIDATE_KEY, [])
        own = _fingerprint(path_utils.serving_model_path(candidates[0].uri)) if candidates else None
        found = _find(exec_properties, own)
        fileio.makedirs(model.uri)
        if found is None:
            logging.info("No model was pushed before: there is nothing to compare with")
            return
        logging.info("Baseline: %s", found)
        io_utils.copy_dir(found, path_utils.serving_model_dir(model.uri))


def without_missing_model(
    input_dict: Mapping[str, list[types.Artifact]], key: str
) -> dict[str, list[types.Artifact]]:
    """`input_dict` without the model under `key` where PushedBaseline found none.

    A step of Kubeflow Pipelines has to write all of its outputs; TFX's own components know only
    an input that is absent.
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
        # A step that is run again must not compare the candidate with its own pushed copy.
        if own is None or _fingerprint(path) != own:
            return path
    return None


def _fingerprint(model: str) -> bytes | None:
    path = os.path.join(model, _FINGERPRINT)
    if not fileio.exists(path):
        return None  # TensorFlow before 2.12 saved it.
    with fileio.open(path, "rb") as file:
        content: bytes = file.read()
    return content
