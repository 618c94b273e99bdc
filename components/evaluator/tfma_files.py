"""The results of an evaluation for functions of TFMA, such as `tfma.load_eval_result`.

TFMA's own writers are Beam stages whose inputs are private types; its messages are public.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tensorflow_model_analysis.proto import (
    config_pb2,
    metrics_for_slice_pb2,
    validation_result_pb2,
)
from tfx.dsl.io import fileio

from components.evaluator.files import BASELINE, CANDIDATE, WHOLE, Results, Slice
from components.evaluator.metrics import METRICS, Counts
from components.evaluator.settings import Evaluation
from preprocessing import features


def eval_config(settings: Evaluation, has_baseline: bool) -> config_pb2.EvalConfig:
    """Return the configuration with which TFMA computes the same metrics."""
    model = {
        "signature_name": "serving_default",
        "prediction_key": "probability",
        "label_key": features.LABEL,
        "preprocessing_function_names": ["transform_features"],
    }
    models = [{"name": CANDIDATE, **model}, {"name": BASELINE, "is_baseline": True, **model}]
    metrics = []
    for metric in METRICS:
        least, least_change = metric.thresholds(settings)
        threshold = _threshold(least, least_change if has_baseline else None)
        # The thresholds apply only to the whole split, because a slice may be very small.
        thresholds = [{"slicing_specs": [{}], "threshold": threshold}] if threshold else []
        metrics.append({"class_name": metric.tfma, "per_slice_thresholds": thresholds})
    return config_pb2.EvalConfig(
        model_specs=models[: 1 + has_baseline],
        metrics_specs=[{"metrics": metrics}],
        slicing_specs=[{}, *({"feature_keys": [key]} for key in settings.slices)],
    )


def write(folder: str, results: Results, models: Mapping[str, str]) -> None:
    """Write the metrics, their configuration and the validation to the folder of an evaluation.

    Args:
      folder: of the ModelEvaluation.
      results: the results.
      models: CANDIDATE and, if there is one, BASELINE -> folder of the model.
    """
    has_baseline = BASELINE in models
    run = config_pb2.EvalRun(
        eval_config=eval_config(results.settings, has_baseline),
        version=tfma.version.VERSION,
        # TFMA has no name for the only model.
        model_locations=models if has_baseline else {"": models[CANDIDATE]},
    )
    with fileio.open(os.path.join(folder, "eval_config.json"), "w") as file:
        file.write(json_format.MessageToJson(run))
    _write_records(folder, "metrics", [_metrics(*item) for item in results.slices.items()])
    _write_records(folder, "validations", [_validation(results)])


def _metrics(
    of_slice: Slice, models: Mapping[str, Counts]
) -> metrics_for_slice_pb2.MetricsForSlice:
    values = {}
    for metric in METRICS:
        for model, counts in models.items():
            values[metric.name, model, False] = metric.value(counts)
        if BASELINE in models:
            change = metric.value(models[CANDIDATE]) - metric.value(models[BASELINE])
            values[metric.name, CANDIDATE, True] = change
    feature, text = of_slice
    key = [{"column": feature, "bytes_value": text.encode()}] if of_slice != WHOLE else []
    return metrics_for_slice_pb2.MetricsForSlice(
        slice_key={"single_slice_keys": key},
        metric_keys_and_values=[
            {
                "key": {
                    "name": name,
                    "model_name": model if BASELINE in models else "",
                    "is_diff": is_diff,
                },
                "value": {"double_value": {"value": value}},
            }
            for (name, model, is_diff), value in values.items()
        ],
    )


def _validation(results: Results) -> validation_result_pb2.ValidationResult:
    failures = [
        {
            "metric_key": {"name": check.metric.name, "is_diff": check.is_change},
            "metric_value": {"double_value": {"value": check.value}},
            "metric_threshold": _threshold(
                *((None, check.limit) if check.is_change else (check.limit, None))
            ),
            "message": check.sentence,
        }
        for check in results.checks()
        if not check.passed
    ]
    of_slices = [{"slice_key": {}, "failures": failures}] if failures else []
    return validation_result_pb2.ValidationResult(
        validation_ok=not failures,
        metric_validations_per_slice=of_slices,
        validation_details={"slicing_details": [{"slicing_spec": {}, "num_matching_slices": 1}]},
    )


def _threshold(least: float | None, least_change: float | None) -> dict[str, Any]:
    """Return the fields of a MetricThreshold."""
    threshold: dict[str, Any] = {}
    if least is not None:
        threshold["value_threshold"] = {"lower_bound": {"value": least}}
    if least_change is not None:
        threshold["change_threshold"] = {
            "direction": config_pb2.MetricDirection.HIGHER_IS_BETTER,
            "absolute": {"value": least_change},
        }
    return threshold


def _write_records(folder: str, name: str, messages: Iterable[Any]) -> None:
    path = os.path.join(folder, f"{name}-00000-of-00001.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for message in messages:
            writer.write(message.SerializeToString())
