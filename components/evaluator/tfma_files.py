"""The files of an evaluation that functions of TFMA read, such as `tfma.load_eval_result`.

TFMA's own writers are Beam stages with inputs of private types. The protocol messages in its files
are public.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tensorflow_model_analysis.proto import config_pb2, metrics_for_slice_pb2
from tfx.dsl.io import fileio

from components.evaluator.counts import Counts
from components.evaluator.files import BASELINE, CANDIDATE, WHOLE, Results, Slice
from components.evaluator.metrics import metrics
from preprocessing import features
from preprocessing.labels import Labels
from preprocessing.signatures import SERVING_DEFAULT, TRANSFORM_FEATURES


def eval_config(labels: Labels, slices: Sequence[str], has_baseline: bool) -> config_pb2.EvalConfig:
    """Return the configuration with which TFMA computes the metrics of an evaluation.

    Args:
      labels: the classes.
      slices: features whose values define slices.
      has_baseline: whether the candidate is compared with a baseline.
    """
    model = {
        "signature_name": SERVING_DEFAULT,
        "prediction_key": labels.scores_name,
        "label_key": features.LABEL,
        "preprocessing_function_names": [TRANSFORM_FEATURES],
    }
    models = [{"name": CANDIDATE, **model}, {"name": BASELINE, "is_baseline": True, **model}]
    return config_pb2.EvalConfig(
        model_specs=models[: 1 + has_baseline],
        metrics_specs=[
            {
                "metrics": [
                    {"class_name": metric.tfma, "config": metric.tfma_config}
                    for metric in metrics(labels)
                    if metric.tfma
                ]
            }
        ],
        slicing_specs=[{}, *({"feature_keys": [key]} for key in slices)],
    )


def write(folder: str, results: Results, models: Mapping[str, str]) -> None:
    """Write the metrics and TFMA's configuration to the folder of a ModelEvaluation.

    Args:
      folder: the folder.
      results: the counts of all slices and models.
      models: CANDIDATE and, if there is one, BASELINE -> folder of the model.

    Raises:
      OSError, tensorflow.errors.OpError: a file cannot be written.
    """
    run = config_pb2.EvalRun(
        eval_config=eval_config(results.labels, results.settings.slices, BASELINE in models),
        version=tfma.version.VERSION,
        # TFMA has no name for the only model.
        model_locations=models if BASELINE in models else {"": models[CANDIDATE]},
    )
    with fileio.open(os.path.join(folder, "eval_config.json"), "w") as file:
        file.write(json_format.MessageToJson(run))
    with tf.io.TFRecordWriter(os.path.join(folder, "metrics-00000-of-00001.tfrecord")) as writer:
        for slice_key, counts in results.slices.items():
            writer.write(_metrics(slice_key, counts, results.labels).SerializeToString())


def _metrics(
    slice_key: Slice, models: Mapping[str, Counts], labels: Labels
) -> metrics_for_slice_pb2.MetricsForSlice:
    values = {}
    for metric in metrics(labels):
        for model, counts in models.items():
            values[metric.name, metric.label, model, False] = metric.value(counts)
        if BASELINE in models:
            change = metric.value(models[CANDIDATE]) - metric.value(models[BASELINE])
            values[metric.name, metric.label, CANDIDATE, True] = change
    feature, text = slice_key
    key = [{"column": feature, "bytes_value": text.encode()}] if slice_key != WHOLE else []
    return metrics_for_slice_pb2.MetricsForSlice(
        slice_key={"single_slice_keys": key},
        metric_keys_and_values=[
            {
                "key": {
                    "name": name,
                    "model_name": model if BASELINE in models else "",
                    "is_diff": is_diff,
                    # The form in which TFMA stores the metrics of one class.
                    "sub_key": None if label is None else {"class_id": {"value": label}},
                },
                "value": {"double_value": {"value": value}},
            }
            for (name, label, model, is_diff), value in values.items()
        ],
    )
