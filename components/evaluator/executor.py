"""Executor of Evaluator: TFX's own, with the accuracy threshold of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow_model_analysis.proto import config_pb2
from tfx import types
from tfx.components.evaluator import executor as tfx_executor
from tfx.types import standard_component_specs
from tfx.utils import proto_utils

from components.baseline.pushed import without_missing_model
from components.beam_executor import LocalBeamExecutor
from components.evaluator.settings import Evaluation
from core.settings import with_parameters

MIN_ACCURACY_KEY = "min_accuracy"
ACCURACY_CLASS = "BinaryAccuracy"


class Executor(LocalBeamExecutor, tfx_executor.Executor):
    """TFX's executor, with `min_accuracy` as a parameter of the run."""

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's Evaluator.

        Raises:
          InputError: `min_accuracy` is not between 0 and 1.
        """
        super().Do(
            without_missing_model(input_dict, standard_component_specs.BASELINE_MODEL_KEY),
            output_dict,
            with_min_accuracy(exec_properties),
        )


def with_min_accuracy(exec_properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the execution properties with `min_accuracy` as the lower bound of the accuracy.

    Raises:
      InputError: `min_accuracy` is not between 0 and 1.
    """
    given = {MIN_ACCURACY_KEY: exec_properties[MIN_ACCURACY_KEY]}
    minimum = with_parameters(Evaluation(), given).min_accuracy
    config = config_pb2.EvalConfig()
    key = standard_component_specs.EVAL_CONFIG_KEY
    proto_utils.json_to_proto(exec_properties[key], config)
    for spec in config.metrics_specs:
        for metric in spec.metrics:
            if metric.class_name == ACCURACY_CLASS:
                for sliced in metric.per_slice_thresholds:
                    sliced.threshold.value_threshold.lower_bound.value = minimum
    return {**exec_properties, key: proto_utils.proto_to_json(config)}
