"""ServingCheck: serves a candidate as in production, and blocks the push if it fails."""

from __future__ import annotations

import json
import os
from typing import Any

from absl import logging
from tfx import types
from tfx.components.evaluator import constants
from tfx.dsl.components.base import base_component, base_executor, executor_spec
from tfx.dsl.io import fileio
from tfx.types import artifact_utils, standard_artifacts, standard_component_specs
from tfx.types.component_spec import ChannelParameter, ExecutionParameter
from tfx.utils import path_utils

from components.evaluator.files import read, stored_predictions
from components.examples import read_sample
from components.properties import BLESSED_PROPERTY, CAUSE_PROPERTY, CHECK_FILE
from components.serving_check import golden, results
from components.serving_check.candidate import try_candidate
from components.serving_check.settings import Thresholds

SPLIT = "test"
SETTINGS_KEY = "settings"
GOLDEN_KEY = "golden"
_MAX_EXAMPLES = 1000
"""Most test Examples whose predictions are compared with the evaluation."""


class Executor(base_executor.BaseExecutor):
    """Serves the model in a new process, and blesses it if it passes all checks."""

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
        thresholds = Thresholds.model_validate_json(exec_properties[SETTINGS_KEY])
        sentences = golden.decode(exec_properties[GOLDEN_KEY])
        sample = read_sample(artifact_utils.get_split_uri([examples], SPLIT), _MAX_EXAMPLES)
        answers, failure = try_candidate(
            path_utils.serving_model_path(model.uri),
            sample.examples,
            [text for _, text in sentences],
        )
        evaluated = results.Evaluated(
            reviews=read(evaluation.uri).candidate.examples,
            predictions=stored_predictions(evaluation.uri, sample.examples),
        )
        found = results.check(answers, failure, thresholds, sample, evaluated, sentences)
        for result in found["results"]:
            logging.info("Serving check: %s", result)
        fileio.makedirs(blessing.uri)
        with fileio.open(os.path.join(blessing.uri, CHECK_FILE), "w") as file:
            file.write(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
        # The property that an Evaluator's blessing has.
        blessing.set_int_custom_property(constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY, model.id)
        blessing.set_int_custom_property(BLESSED_PROPERTY, int(found["passed"]))
        blessing.set_string_custom_property(CAUSE_PROPERTY, found["cause"])


class ServingCheckSpec(types.ComponentSpec):
    """The interface of ServingCheck."""

    PARAMETERS = {
        SETTINGS_KEY: ExecutionParameter(type=str),
        GOLDEN_KEY: ExecutionParameter(type=str),
    }
    INPUTS = {
        standard_component_specs.MODEL_KEY: ChannelParameter(type=standard_artifacts.Model),
        standard_component_specs.EXAMPLES_KEY: ChannelParameter(type=standard_artifacts.Examples),
        standard_component_specs.EVALUATION_KEY: ChannelParameter(
            type=standard_artifacts.ModelEvaluation
        ),
    }
    OUTPUTS = {
        standard_component_specs.BLESSING_KEY: ChannelParameter(
            type=standard_artifacts.InfraBlessing
        )
    }


class ServingCheck(base_component.BaseComponent):
    """A model, raw Examples and the model's evaluation -> `blessing`, which a Pusher takes as
    `infra_blessing`.

    TFX's InfraValidator requires Docker or a Kubernetes cluster, and only sends requests.
    """

    SPEC_CLASS = ServingCheckSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(
        self,
        model: types.BaseChannel,
        examples: types.BaseChannel,
        evaluation: types.BaseChannel,
        thresholds: Thresholds,
    ):
        """Construct the component.

        Args:
          model: the candidate.
          examples: raw Examples, of which the split `test` was evaluated.
          evaluation: the Evaluator's evaluation of the model.
          thresholds: the thresholds. The golden sentences are read here: their text is a part
            of the cache key and of a compiled pipeline.

        Raises:
          ConfigError: the golden sentences are not readable.
        """
        sentences = golden.read_golden(thresholds.golden)
        super().__init__(
            spec=ServingCheckSpec(
                model=model,
                examples=examples,
                evaluation=evaluation,
                # The property `golden` has the text of the golden sentences instead of the path.
                settings=thresholds.model_dump_json(exclude={"golden"}),
                golden=golden.encode(sentences),
                blessing=types.Channel(type=standard_artifacts.InfraBlessing),
            )
        )
