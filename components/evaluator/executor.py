"""Executor of Evaluator: TFX's own, or one that computes the same metrics in large batches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import apache_beam as beam
import tensorflow_model_analysis as tfma
from absl import logging
from tensorflow_model_analysis.proto import config_pb2
from tfx import types
from tfx.components.evaluator import constants
from tfx.components.evaluator import executor as tfx_executor
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import io_utils, proto_utils

from components.baseline.served import existing_model
from components.beam_executor import LocalBeamExecutor
from components.evaluator import sampled, stages, tfma_internals
from components.evaluator.metrics import ACCURACY_CLASS
from components.evaluator.plan import Plan, Unsupported, make_plan
from components.evaluator.settings import Evaluation
from components.examples import uris_without_magic
from components.properties import BASELINE_PROPERTY
from core.settings import with_parameters

MIN_ACCURACY_KEY = "min_accuracy"
BATCHED_KEY = "batched"
_FILES_PER_UNIT = 8


class Executor(LocalBeamExecutor, tfx_executor.Executor):
    """Evaluates in batches where `batched` is set, and by TFX's executor otherwise.

    TFX's executor is also used, with a message in the log, for what `plan` does not support.
    """

    def Do(
        self,
        input_dict: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        exec_properties: dict[str, Any],
    ) -> None:
        """See TFX's Evaluator.

        Raises:
          InputError: `min_accuracy` is not between 0 and 1, or the baseline is unknown or gone.
        """
        inputs = existing_model(input_dict, standard_component_specs.BASELINE_MODEL_KEY)
        properties = with_min_accuracy(exec_properties)
        blessing = artifact_utils.get_single_instance(
            output_dict[standard_component_specs.BLESSING_KEY]
        )
        for model in inputs.get(standard_component_specs.BASELINE_MODEL_KEY, []):
            name = model.get_string_custom_property(BASELINE_PROPERTY) or model.uri
            blessing.set_string_custom_property(BASELINE_PROPERTY, name)
        patterns = (
            inputs[standard_component_specs.EXAMPLES_KEY]
            + output_dict[standard_component_specs.EVALUATION_KEY]
        )
        with uris_without_magic(patterns):
            self._do(inputs, output_dict, properties)

    def _do(
        self,
        inputs: dict[str, list[types.Artifact]],
        output_dict: dict[str, list[types.Artifact]],
        properties: dict[str, Any],
    ) -> None:
        plan = None
        if properties.get(BATCHED_KEY):
            try:
                plan = make_plan(inputs, properties)
            except Unsupported as reason:
                logging.warning("TFX's own executor evaluates, which takes longer: %s", reason)
        if plan is None:
            super().Do(inputs, output_dict, properties)
            return
        self._log_startup(inputs, output_dict, properties)
        self._evaluate(
            plan,
            artifact_utils.get_single_uri(output_dict[standard_component_specs.EVALUATION_KEY]),
        )
        thresholds = tfma.metrics.metric_thresholds_from_metrics_specs(
            plan.eval_config.metrics_specs, eval_config=plan.eval_config
        )
        if thresholds:
            _bless(inputs, output_dict, properties)
        else:
            logging.info("No threshold is configured, so the model is not blessed")

    def _evaluate(self, plan: Plan, folder: str) -> None:
        shared = plan.shared[0] if len(plan.shared) == 1 else plan.shared
        count = -(-len(plan.files) // _FILES_PER_UNIT)
        units = [plan.files[number::count] for number in range(count)]
        with self._make_beam_pipeline() as pipeline:
            found = (
                pipeline
                | "Files" >> beam.Create(units, reshuffle=True)
                | "SumFiles"
                >> beam.ParDo(
                    stages.SumFiles(plan.models, plan.candidate, plan.label, plan.eval_config)
                ).with_outputs(stages.SAMPLED, main=stages.SUMS)
            )
            _ = (
                found[stages.SAMPLED]
                | "MergeSamples" >> beam.CombineGlobally(sampled.merge)
                | "WriteSample" >> beam.Map(sampled.write, folder)
            )
            values = found[stages.SUMS] | "MergeSums" >> beam.CombinePerKey(
                stages.MergeSums(plan.eval_config)
            )
            evaluation = tfma_internals.evaluation(values, plan.eval_config)
            writers = tfma.default_writers(
                output_path=folder, eval_shared_model=shared, eval_config=plan.eval_config
            )
            _ = evaluation | "WriteResults" >> tfma.WriteResults(writers=writers)
        logging.info("Evaluation complete. Results written to %s", folder)


def _bless(
    input_dict: Mapping[str, list[types.Artifact]],
    output_dict: Mapping[str, list[types.Artifact]],
    exec_properties: Mapping[str, Any],
) -> None:
    """Write the blessing with the properties that TFX's executor gives it."""
    blessing = artifact_utils.get_single_instance(
        output_dict[standard_component_specs.BLESSING_KEY]
    )
    for key, uri_property, id_property in (
        (
            standard_component_specs.MODEL_KEY,
            constants.ARTIFACT_PROPERTY_CURRENT_MODEL_URI_KEY,
            constants.ARTIFACT_PROPERTY_CURRENT_MODEL_ID_KEY,
        ),
        (
            standard_component_specs.BASELINE_MODEL_KEY,
            constants.ARTIFACT_PROPERTY_BASELINE_MODEL_URI_KEY,
            constants.ARTIFACT_PROPERTY_BASELINE_MODEL_ID_KEY,
        ),
    ):
        for model in input_dict.get(key, []):
            blessing.set_string_custom_property(uri_property, model.uri)
            blessing.set_int_custom_property(id_property, model.id)
    if "current_component_id" in exec_properties:
        blessing.set_string_custom_property("component_id", exec_properties["current_component_id"])
    evaluation = artifact_utils.get_single_uri(output_dict[standard_component_specs.EVALUATION_KEY])
    is_blessed = tfma.load_validation_result(evaluation).validation_ok
    name = constants.BLESSED_FILE_NAME if is_blessed else constants.NOT_BLESSED_FILE_NAME
    io_utils.write_string_file(os.path.join(blessing.uri, name), "")
    blessing.set_int_custom_property(
        constants.ARTIFACT_PROPERTY_BLESSED_KEY,
        constants.BLESSED_VALUE if is_blessed else constants.NOT_BLESSED_VALUE,
    )
    logging.info("Blessing result %s written to %s", is_blessed, blessing.uri)


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
