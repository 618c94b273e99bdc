"""Executor of ServingCheck: runs the probe, and writes its results and the blessing."""

from __future__ import annotations

import json
import os
from typing import Any

from absl import logging
from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import path_utils

from components.evaluator.files import overall_metrics, stored_predictions
from components.properties import BLESSED_PROPERTY, CAUSE_PROPERTY, CHECK_FILE
from components.sample import read_sample
from components.serving_check import results
from components.serving_check.golden import decode
from components.serving_check.probing import run_probe
from components.serving_check.settings import Serving

SPLIT = "test"
SETTINGS_KEY = "settings"
GOLDEN_KEY = "golden"


class Executor(base_executor.BaseExecutor):
    """Loads the model in a new process, and blesses it if it passes all checks."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's BaseExecutor. A model that fails the check is not pushed; this is no error."""
        self._log_startup(input_dict, output_dict, exec_properties)
        [model] = input_dict[standard_component_specs.MODEL_KEY]
        [examples] = input_dict[standard_component_specs.EXAMPLES_KEY]
        [evaluation] = input_dict[standard_component_specs.EVALUATION_KEY]
        [blessing] = output_dict[standard_component_specs.BLESSING_KEY]
        settings = Serving.model_validate_json(exec_properties[SETTINGS_KEY])
        golden = decode(exec_properties[GOLDEN_KEY])
        sample = read_sample(
            artifact_utils.get_split_uri([examples], SPLIT), settings.check_examples
        )
        answer, failure = run_probe(
            path_utils.serving_model_path(model.uri),
            sample.examples,
            [text for _, text in golden],
            settings.timeout_seconds,
        )
        evaluated = results.Evaluated(
            metrics=overall_metrics(evaluation.uri),
            predictions=stored_predictions(evaluation.uri, sample.examples),
        )
        found = results.check(answer, failure, settings, sample, evaluated, golden)
        for result in found["results"]:
            logging.info("Serving check: %s", result)
        fileio.makedirs(blessing.uri)
        with fileio.open(os.path.join(blessing.uri, CHECK_FILE), "w") as file:
            file.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        # The property that an Evaluator's blessing has.
        blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY, model.id)
        blessing.set_int_custom_property(BLESSED_PROPERTY, int(found["passed"]))
        blessing.set_string_custom_property(CAUSE_PROPERTY, found["cause"])
