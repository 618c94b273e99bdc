"""Executor of PushedBaseline: copies the served model."""

from __future__ import annotations

from typing import Any

from absl import logging
from tfx import types
from tfx.dsl.components.base import base_executor

from components.baseline.served import served_model, write_no_model
from components.properties import BASELINE_PROPERTY

CANDIDATE_KEY = "candidate"
MODEL_KEY = "model"
SERVING_DIR_KEY = "serving_dir"


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
          InputError: the model is damaged.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        [model] = output_dict[MODEL_KEY]
        candidate = next(iter(input_dict.get(CANDIDATE_KEY, [])), None)
        served = served_model(exec_properties[SERVING_DIR_KEY], candidate)
        if served is None:
            logging.info("No other model is served: the evaluation has no baseline")
            write_no_model(model)
            return
        logging.info("Baseline: %s", served.path)
        served.copy_to(model)
        model.set_string_custom_property(BASELINE_PROPERTY, served.name)
