"""The sums of an evaluation: those of TFMA's combiners, however the reviews are divided."""

import pickle

import numpy as np
import pytest
import tensorflow_model_analysis as tfma
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_model_analysis.metrics import metric_types
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.utils import update_eval_config_with_defaults

from components.evaluator import tfma_internals
from components.evaluator.sums import Pairs
from pipeline.config import PipelineConfig
from pipeline.evaluation import eval_config

pytestmark = [pytest.mark.slow, pytest.mark.both_stacks]

METRICS = [
    ("ExampleCount", ""),
    ("WeightedExampleCount", ""),
    ("Calibration", ""),
    ("MeanLabel", ""),
    ("AUC", ""),
    ("AUC", '"thresholds": [0.25, 0.5, 1.0]'),
    ("BinaryAccuracy", '"threshold": 0.1'),
    ("Precision", ""),
    ("ConfusionMatrixAtThresholds", '"thresholds": [0.0, 0.1, 0.5, 1.0]'),
    ("CalibrationPlot", '"num_buckets": 3, "left": 0.2, "right": 0.7'),
    ("SpecificityAtSensitivity", '"sensitivity": 0.5, "num_thresholds": 11'),
]
# 0.1 is no float32: above it are only the predictions that are above it as float64 too.
PREDICTIONS = st.floats(0, 1, width=32) | st.sampled_from(
    [0.0, 1.0, 0.5, 0.25, *np.float32([0.1, 1e-7, 0.9999, 0.99999994]).tolist()]
)


def config(*metrics):
    spec = config_pb2.MetricsSpec(
        metrics=[config_pb2.MetricConfig(class_name=name, config=text) for name, text in metrics]
    )
    return config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(label_key="label", prediction_key="probability")],
        metrics_specs=[spec],
    )


@pytest.fixture(scope="module")
def all_combined():
    return tfma_internals.combined(config(*METRICS))


def inputs(label, prediction):
    return metric_types.StandardMetricInputs(
        label=np.array([label]), prediction=np.array([prediction], np.float32)
    )


def plain(value):
    """Return a value of TFMA as numbers and lists, without the types of its containers."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "__slots__"):
        return [getattr(value, name) for name in value.__slots__]
    if hasattr(value, "__dataclass_fields__"):
        return [getattr(value, name) for name in value.__dataclass_fields__]
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def assert_close(found, wanted):
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            assert_close(found[key], wanted[key])
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other)
    else:
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@settings(max_examples=40)
@given(
    labels=st.sampled_from([[0, 1], [0, 0.25, 1]]),
    reviews=st.lists(st.tuples(st.integers(0, 2), PREDICTIONS, st.integers(0, 2)), min_size=1),
)
def test_divided_sums_are_those_of_tfma_for_one_review_after_the_other(
    all_combined, labels, reviews
):
    rows = [(labels[kind % len(labels)], value, part) for kind, value, part in reviews]
    kinds = {type(item.sums).__name__ for item in all_combined}
    assert kinds == {"Count", "Totals", "Histogram", "Matrices"}
    for item in all_combined:
        tfma_accumulator = item.combiner.create_accumulator()
        for label, prediction, _ in rows:
            tfma_accumulator = item.combiner.add_input(tfma_accumulator, inputs(label, prediction))
        wanted = item.combiner.extract_output(tfma_accumulator)
        parts = []
        for part in {row[2] for row in rows}:
            columns = [row[:2] for row in rows if row[2] == part]
            parts.append(item.sums.of(Pairs(*np.array(columns, np.float64).T)))
        found = item.output(item.sums.merge(parts))
        assert found.keys() == wanted.keys()
        assert_close(plain(found), plain(wanted))


def test_labels_outside_of_the_range_of_tfma_are_refused(all_combined):
    with pytest.raises(ValueError, match=r"labels from 0.0 to 2.0 are not within \[0, 1\]"):
        for item in all_combined:
            item.sums.of(Pairs(np.array([0.0, 2.0]), np.array([0.5, 0.5])))


@pytest.mark.parametrize(
    "metric",
    [
        ("BinaryCrossentropy", ""),
        (
            "FalsePositiveFeatureSampler",
            '"threshold": 0.5, "feature_key": "id", "sample_size": 2',
        ),
    ],
)
def test_a_metric_of_more_than_sums_is_refused(metric):
    with pytest.raises(tfma_internals.UnsupportedMetric):
        tfma_internals.combined(config(("ExampleCount", ""), metric))


@pytest.mark.parametrize(
    "changes",
    [
        {"binarize": {"class_ids": {"values": [0]}}},
        {"aggregate": {"micro_average": True}},
        {"output_names": ["other"]},
    ],
)
def test_predictions_of_several_classes_or_outputs_are_refused(changes):
    changed = config(("AUC", ""))
    changed.metrics_specs[0].MergeFrom(config_pb2.MetricsSpec(**changes))
    with pytest.raises(tfma_internals.UnsupportedMetric):
        tfma_internals.combined(changed)


def test_weights_are_refused():
    changed = config(("AUC", ""))
    changed.model_specs[0].example_weight_key = "weight"
    changed.metrics_specs[0].example_weights.weighted = True
    with pytest.raises(tfma_internals.UnsupportedMetric):
        tfma_internals.combined(tfma.utils.update_eval_config_with_defaults(changed))


def test_an_accumulator_does_not_grow_with_the_reviews():
    """Flink ends a job with a record that is larger than its sort buffer, 89 MB by default."""
    combined = tfma_internals.combined(
        update_eval_config_with_defaults(eval_config(PipelineConfig()), has_baseline=True)
    )
    chance = np.random.default_rng(0)
    parts = []
    for _ in range(20):
        labels = chance.integers(0, 2, 1 << 16).astype(np.float64)
        pairs = Pairs(labels, chance.random(len(labels)))
        parts.append([item.sums.of(pairs) for item in combined])
    merged = [
        item.sums.merge(accumulators) for item, *accumulators in zip(combined, *parts, strict=True)
    ]
    one, twenty = (len(pickle.dumps(sums)) for sums in (parts[0], merged))
    assert twenty < 1.5 * one < 1 << 20
