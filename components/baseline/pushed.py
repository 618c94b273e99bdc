"""Executor of PushedBaseline: copies the newest pushed model, if its signature is valid."""

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
from serving.signing.model import verified
from serving.signing.settings import Signing, verification_key
from serving.versions import is_complete, versions

CANDIDATE_KEY = "candidate"
MODEL_KEY = "model"
SERVING_DIR_KEY = "serving_dir"
MODEL_DIR_KEY = "model_dir"
SIGNING_KEY = "signing"
"""Key of the settings `signing` as JSON."""
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
          ConfigError: a key of `signing` cannot be read.
          SignatureError: see `serving.signing.model.verified`.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        [model] = output_dict[MODEL_KEY]
        configured = exec_properties.get(MODEL_DIR_KEY)
        candidates = [] if configured else input_dict.get(CANDIDATE_KEY, [])
        own = _fingerprint(path_utils.serving_model_path(candidates[0].uri)) if candidates else None
        public_key = verification_key(Signing.model_validate_json(exec_properties[SIGNING_KEY]))
        fileio.makedirs(model.uri)
        serving = versions(exec_properties[SERVING_DIR_KEY])
        for path in [_configured(configured)] if configured else serving:
            # A model that is not valid is an error and not skipped. Otherwise a change of the
            # newest model would make an older one the baseline.
            with verified(path, public_key) as trusted:
                # A retried step must not compare the candidate with its own pushed copy.
                if own is not None and _fingerprint(trusted) == own:
                    continue
                logging.info("Baseline: %s", path)
                io_utils.copy_dir(trusted, path_utils.serving_model_dir(model.uri))
                return
        logging.info("No model was pushed before: the evaluation has no baseline")


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


def _configured(model_dir: str) -> str:
    if not is_complete(model_dir):
        raise InputError(f"evaluation.baseline_model: no SavedModel in {model_dir}")
    return model_dir


def _fingerprint(model: str) -> bytes | None:
    path = os.path.join(model, _FINGERPRINT)
    if not fileio.exists(path):
        return None  # A TensorFlow older than 2.12 saved the model.
    with fileio.open(path, "rb") as file:
        content: bytes = file.read()
    return content
