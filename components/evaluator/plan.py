"""Decide whether an evaluation can be computed in batches, and from what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.proto import config_pb2
from tfx import types
from tfx.components.util import examples_utils
from tfx.dsl.io import fileio
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils, standard_component_specs
from tfx.utils import json_utils, path_utils, proto_utils

from components.evaluator import tfma_internals
from components.evaluator.scoring import EvaluatedModel
from components.evaluator.slices import slicing_features
from components.examples import split_files
from core.files import without_magic

_DEFAULT_TRANSFORMS = {"transformed_features", "transformed_labels"}
"""Signatures that TFMA calls if they exist and the configuration names no other ones."""
_MODEL_FIELDS = {
    "name",
    "signature_name",
    "preprocessing_function_names",
    "label_key",
    "prediction_key",
    "is_baseline",
}
_OPTIONS = {"include_default_metrics", "disabled_outputs"}
_SLICE_FIELDS = {"feature_keys", "feature_values"}
_INPUT = "examples"
"""The input of a signature for serialized Examples; to other inputs TFMA passes features."""


class Unsupported(Exception):
    """An evaluation that only TFX's own executor can compute; the message is the reason."""


class Plan(NamedTuple):
    """An evaluation that can be computed in batches.

    Attributes:
      eval_config: the configuration with TFMA's defaults.
      shared: TFMA's objects of the models, which its writers require.
      models: the models, whose order is that of `shared`.
      candidate: the name of the model that is no baseline.
      label: the feature with the label.
      files: the files of Examples.
    """

    eval_config: config_pb2.EvalConfig
    shared: list[Any]
    models: list[EvaluatedModel]
    candidate: str
    label: str
    files: list[str]


def make_plan(
    input_dict: Mapping[str, list[types.Artifact]], exec_properties: Mapping[str, Any]
) -> Plan:
    """Return the plan of an evaluation.

    Raises:
      Unsupported: the configuration, a model or the Examples require TFX's own executor.
    """
    given = config_pb2.EvalConfig()
    proto_utils.json_to_proto(exec_properties[standard_component_specs.EVAL_CONFIG_KEY], given)
    has_baseline = bool(input_dict.get(standard_component_specs.BASELINE_MODEL_KEY))
    eval_config = tfma.utils.update_eval_config_with_defaults(
        given, has_baseline=has_baseline, rubber_stamp=True
    )
    tfma.utils.verify_eval_config(eval_config)
    _check_config(eval_config)
    names = slicing_features(eval_config)
    shared, models = [], []
    for spec in eval_config.model_specs:
        key = (
            standard_component_specs.BASELINE_MODEL_KEY
            if spec.is_baseline
            else standard_component_specs.MODEL_KEY
        )
        artifact = artifact_utils.get_single_instance(input_dict[key])
        folder = without_magic(
            path_utils.serving_model_path(artifact.uri, path_utils.is_old_model_artifact(artifact))
        )
        # TFMA has no name for the only model.
        name = spec.name if len(eval_config.model_specs) > 1 else ""
        models.append(_evaluated(spec, name, folder, names))
        shared.append(
            tfma.default_eval_shared_model(
                eval_saved_model_path=folder, model_name=spec.name, eval_config=eval_config
            )
        )
        if shared[-1].model_type != constants.TF_GENERIC:
            raise Unsupported(f"{folder} is a model of the type {shared[-1].model_type}")
    specs = zip(eval_config.model_specs, models, strict=True)
    return Plan(
        eval_config,
        shared,
        models,
        next(model.name for spec, model in specs if not spec.is_baseline),
        eval_config.model_specs[0].label_key,
        _files(input_dict[standard_component_specs.EXAMPLES_KEY], exec_properties),
    )


def _check_config(eval_config: config_pb2.EvalConfig) -> None:
    options = _fields(eval_config.options) - _OPTIONS
    if options:
        raise Unsupported(f"the configuration has the options {sorted(options)}")
    if eval_config.cross_slicing_specs:
        raise Unsupported("the configuration has cross slices")
    for spec in eval_config.slicing_specs:
        if _fields(spec) - _SLICE_FIELDS:
            raise Unsupported("a slice is defined by SQL")
    if any(spec.query_key for spec in eval_config.metrics_specs):
        raise Unsupported("metrics have a query key")
    if len({spec.label_key for spec in eval_config.model_specs}) != 1:
        raise Unsupported("the models have different labels")
    try:
        tfma_internals.combined(eval_config)
    except tfma_internals.UnsupportedMetric as error:
        raise Unsupported(f"the metric {error} cannot be computed from sums") from None


def _evaluated(
    spec: config_pb2.ModelSpec, name: str, folder: str, slice_features: list[str]
) -> EvaluatedModel:
    more = _fields(spec) - _MODEL_FIELDS
    if more:
        raise Unsupported(f"the configuration of a model has {sorted(more)}")
    signatures = _signatures(folder)
    transforms = list(spec.preprocessing_function_names)
    if not transforms and _DEFAULT_TRANSFORMS & signatures.keys():
        raise Unsupported(f"{folder} has signatures that TFMA calls by default")
    for signature in (spec.signature_name, *transforms):
        definition = signatures.get(signature)
        if definition is None or set(definition.inputs) != {_INPUT}:
            raise Unsupported(f"{folder} has no signature {signature!r} for serialized Examples")
    prediction = signatures[spec.signature_name].outputs.get(spec.prediction_key)
    if prediction is None or not _is_one_number(prediction):
        raise Unsupported(f"{folder} does not predict one number {spec.prediction_key!r}")
    outputs = {
        signature: [key for key in slice_features if key in signatures[signature].outputs]
        for signature in transforms
    }
    for signature in transforms:
        found = signatures[signature].outputs
        if spec.label_key in found:
            raise Unsupported(f"{folder} transforms the label")
        if any(found[key].WhichOneof("encoding") != "name" for key in outputs[signature]):
            raise Unsupported(f"{folder} returns features of slices that are not dense")
    used = {signature: keys for signature, keys in outputs.items() if keys}
    return EvaluatedModel(
        name, folder, spec.signature_name, spec.prediction_key, used, frozenset(signatures)
    )


def _signatures(folder: str) -> dict[str, meta_graph_pb2.SignatureDef]:
    with fileio.open(f"{folder}/saved_model.pb", "rb") as file:
        graphs = saved_model_pb2.SavedModel.FromString(file.read()).meta_graphs
    for graph in graphs:
        if tf.saved_model.SERVING in graph.meta_info_def.tags:
            return dict(graph.signature_def)
    raise Unsupported(f"{folder} is not a model for serving")


def _is_one_number(output: meta_graph_pb2.TensorInfo) -> bool:
    shape = output.tensor_shape
    sizes = [dimension.size for dimension in shape.dim]
    return (
        not shape.unknown_rank
        and sizes[1:] in ([], [1])
        and len(sizes) >= 1
        and output.dtype in (tf.float32.as_datatype_enum, tf.float64.as_datatype_enum)
    )


def _files(examples: list[types.Artifact], exec_properties: Mapping[str, Any]) -> list[str]:
    for artifact in examples:
        if (
            examples_utils.get_payload_format(artifact) != example_gen_pb2.FORMAT_TF_EXAMPLE
            or examples_utils.get_file_format(artifact) != "tfrecords_gzip"
        ):
            raise Unsupported(f"{artifact.uri} has no gzipped TFRecords of tf.Examples")
    key = standard_component_specs.EXAMPLE_SPLITS_KEY
    splits = json_utils.loads(exec_properties.get(key, "null")) or ["eval"]
    return split_files(examples, splits)


def _fields(message: Any) -> set[str]:
    return {field.name for field, _ in message.ListFields()}
