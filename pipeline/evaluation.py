"""The metrics, slices and thresholds of the Evaluator."""

from __future__ import annotations

import tensorflow_model_analysis as tfma
from google.protobuf import wrappers_pb2
from tensorflow_model_analysis.proto import config_pb2

from components.evaluator.metrics import CANDIDATE
from pipeline.config import PipelineConfig
from preprocessing import features


def eval_config(config: PipelineConfig) -> tfma.EvalConfig:
    """Return the TFMA configuration; its threshold against a baseline requires a baseline."""
    evaluation = config.evaluation
    threshold = tfma.MetricThreshold(
        value_threshold=tfma.GenericValueThreshold(
            lower_bound=wrappers_pb2.DoubleValue(value=evaluation.min_accuracy)
        ),
        change_threshold=tfma.GenericChangeThreshold(
            direction=tfma.MetricDirection.HIGHER_IS_BETTER,
            absolute=wrappers_pb2.DoubleValue(value=-evaluation.max_accuracy_drop),
        ),
    )
    metrics = [
        tfma.MetricConfig(class_name="ExampleCount"),
        tfma.MetricConfig(
            class_name="BinaryAccuracy",
            # Only for the whole split: a slice of five reviews must not decide.
            per_slice_thresholds=[
                config_pb2.PerSliceMetricThreshold(
                    slicing_specs=[tfma.SlicingSpec()], threshold=threshold
                )
            ],
        ),
        tfma.MetricConfig(class_name="AUC"),
        tfma.MetricConfig(class_name="Precision"),
        tfma.MetricConfig(class_name="Recall"),
        tfma.MetricConfig(class_name="Calibration"),
        tfma.MetricConfig(class_name="ConfusionMatrixAtThresholds", config='"thresholds": [0.5]'),
    ]
    slices = [tfma.SlicingSpec()]
    slices += [tfma.SlicingSpec(feature_keys=[key]) for key in evaluation.slices]
    model = {
        "signature_name": "serving_default",
        "prediction_key": "probability",
        "label_key": features.LABEL,
        "preprocessing_function_names": ["transform_features"],
    }
    return tfma.EvalConfig(
        model_specs=[
            tfma.ModelSpec(name=CANDIDATE, **model),
            tfma.ModelSpec(name="baseline", is_baseline=True, **model),
        ],
        metrics_specs=[tfma.MetricsSpec(metrics=metrics)],
        slicing_specs=slices,
    )
