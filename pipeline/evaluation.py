"""The metrics, slices and thresholds of the Evaluator."""

from __future__ import annotations

from google.protobuf import wrappers_pb2
from tensorflow_model_analysis.proto import config_pb2

from components.evaluator.metrics import ACCURACY_CLASS, BASELINE, CANDIDATE
from pipeline.config import PipelineConfig
from preprocessing import features


def eval_config(config: PipelineConfig) -> config_pb2.EvalConfig:
    """Return the TFMA configuration; TFX ignores the change threshold without a baseline."""
    evaluation = config.evaluation
    threshold = config_pb2.MetricThreshold(
        value_threshold=config_pb2.GenericValueThreshold(
            lower_bound=wrappers_pb2.DoubleValue(value=evaluation.min_accuracy)
        ),
        change_threshold=config_pb2.GenericChangeThreshold(
            direction=config_pb2.MetricDirection.HIGHER_IS_BETTER,
            absolute=wrappers_pb2.DoubleValue(value=-evaluation.max_accuracy_drop),
        ),
    )
    metrics = [
        config_pb2.MetricConfig(class_name="ExampleCount"),
        config_pb2.MetricConfig(
            class_name=ACCURACY_CLASS,
            # The thresholds apply only to the whole split, because a slice may be very small.
            per_slice_thresholds=[
                config_pb2.PerSliceMetricThreshold(
                    slicing_specs=[config_pb2.SlicingSpec()], threshold=threshold
                )
            ],
        ),
        config_pb2.MetricConfig(class_name="AUC"),
        config_pb2.MetricConfig(class_name="Precision"),
        config_pb2.MetricConfig(class_name="Recall"),
        config_pb2.MetricConfig(class_name="Calibration"),
        config_pb2.MetricConfig(
            class_name="ConfusionMatrixAtThresholds", config='"thresholds": [0.5]'
        ),
    ]
    slices = [config_pb2.SlicingSpec()]
    slices += [config_pb2.SlicingSpec(feature_keys=[key]) for key in evaluation.slices]
    model = {
        "signature_name": "serving_default",
        "prediction_key": "probability",
        "label_key": features.LABEL,
        "preprocessing_function_names": ["transform_features"],
    }
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(name=CANDIDATE, **model),
            config_pb2.ModelSpec(name=BASELINE, is_baseline=True, **model),
        ],
        metrics_specs=[config_pb2.MetricsSpec(metrics=metrics)],
        slicing_specs=slices,
    )
