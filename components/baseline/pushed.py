"""Executor of PushedBaseline: copies the served model, if its signature is valid."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from absl import logging
from tfx import types
from tfx.dsl.components.base import base_executor

from components.baseline.served import Served, served_model, write_no_model
from components.properties import BASELINE_PROPERTY
from core.errors import InputError
from serving.signing.model import verified
from serving.signing.settings import Signing, verification_key
from serving.versions import is_complete

CANDIDATE_KEY = "candidate"
MODEL_KEY = "model"
SERVING_DIR_KEY = "serving_dir"
MODEL_DIR_KEY = "model_dir"
SIGNING_KEY = "signing"
"""Key of the settings `signing` as JSON."""


class Executor(base_executor.BaseExecutor):
    """Copies a SavedModel to the artifact, or records in the artifact that there is none."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor.

        Raises:
          InputError: `evaluation.baseline_model` is set, and there is no SavedModel; or the model
            is damaged.
          ConfigError: a key of `signing` cannot be read.
          SignatureError: see `serving.signing.model.verified`.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        [model] = output_dict[MODEL_KEY]
        public_key = verification_key(Signing.model_validate_json(exec_properties[SIGNING_KEY]))
        configured = exec_properties.get(MODEL_DIR_KEY)
        if configured:
            chosen = _configured(configured, public_key)
        else:
            candidate = next(iter(input_dict.get(CANDIDATE_KEY, [])), None)
            chosen = served_model(exec_properties[SERVING_DIR_KEY], candidate, public_key)
        with chosen as served:
            if served is None:
                logging.info("No other model is served: the evaluation has no baseline")
                write_no_model(model)
                return
            logging.info("Baseline: %s", served.path)
            served.copy_to(model)
            model.set_string_custom_property(BASELINE_PROPERTY, served.name)


@contextlib.contextmanager
def _configured(folder: str, public_key: bytes | None) -> Iterator[Served | None]:
    if not is_complete(folder):
        raise InputError(f"evaluation.baseline_model: no SavedModel in {folder}")
    with verified(folder, public_key) as trusted:
        yield Served(folder, folder, trusted)
