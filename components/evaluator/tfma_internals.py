"""The private parts of TensorFlow Model Analysis that this package uses, and the reason.

TFMA's public Beam stages pass one Python object for each review through each metric, which takes
most of the time of an evaluation. Its combiners have no public method for a column of predictions,
and their parameters are private attributes. Here only the sums come from elsewhere: TFMA's own code
derives all metrics, differences from the baseline, plots and validations from them
(tensorflow_model_analysis 0.47 and 0.52).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.contrib.aggregates import binary_confusion_matrices as aggregates
from tensorflow_model_analysis.evaluators import metrics_plots_and_validations_evaluator as stock
from tensorflow_model_analysis.evaluators import metrics_validator
from tensorflow_model_analysis.metrics import (
    binary_confusion_matrices,
    calibration,
    calibration_histogram,
    example_count,
    metric_specs,
    metric_types,
    metric_util,
)
from tensorflow_model_analysis.proto import config_pb2
from tensorflow_model_analysis.utils import model_util

from components.evaluator.sums import Buckets, Count, Histogram, Matrices, Sums, Totals

_EXTRACT = "_extract_label_prediction_and_weight"


class UnsupportedMetric(Exception):
    """A metric that requires TFMA's own Beam stages; the message is its name."""


class Combined(NamedTuple):
    """The sums of one of TFMA's combiners.

    Attributes:
      model: name of the model whose predictions are summed, empty if there is only one model.
      sums: how they are computed.
      combiner: TFMA's combiner, which converts them to the input of derived metrics.
    """

    model: str
    sums: Sums
    combiner: Any

    def output(self, accumulator: Any) -> dict[Any, Any]:
        """Return key -> value, as TFMA's combiner does after its last review."""
        values: dict[Any, Any] = self.combiner.extract_output(
            _tfma_accumulator(self.combiner, self.sums, accumulator)
        )
        return values


def combined(eval_config: config_pb2.EvalConfig) -> list[Combined]:
    """Return the sums that the metrics of a configuration need.

    Raises:
      UnsupportedMetric: a metric needs more than such sums.
    """
    return [
        _combined(computation)
        for computation in _computations(eval_config).non_derived_computations
    ]


def evaluation(
    sliced_values: beam.PCollection, eval_config: config_pb2.EvalConfig
) -> dict[str, beam.PCollection]:
    """Return what TFMA's writers write.

    Args:
      sliced_values: (key of a slice, the joined outputs of all `combined`).
      eval_config: the configuration.
    """
    computations = _computations(eval_config)
    baseline = model_util.get_baseline_model_spec(eval_config)
    sliced = (
        sliced_values
        | "DerivedMetrics"
        >> stock._AddDerivedCrossSliceAndDiffMetrics(
            computations.derived_computations,
            computations.cross_slice_computations,
            [],
            baseline.name if baseline else None,
        )
        | "DerivedFromIntervals"
        >> beam.Map(stock._add_ci_derived_metrics, computations.ci_derived_computations)
        | "RemovePrivateMetrics" >> beam.MapTuple(stock._remove_private_metrics)
    )
    by_type = {
        constants.METRICS_KEY: metric_types.MetricKey,
        constants.PLOTS_KEY: metric_types.PlotKey,
        constants.ATTRIBUTIONS_KEY: metric_types.AttributionsKey,
    }
    found = {
        key: sliced | f"Filter[{key}]" >> beam.Map(stock._filter_by_key_type, of_type)
        for key, of_type in by_type.items()
    }
    found[constants.VALIDATIONS_KEY] = found[constants.METRICS_KEY] | "Validate" >> beam.Map(
        metrics_validator.validate_metrics, eval_config
    )
    return found


def _computations(eval_config: config_pb2.EvalConfig) -> Any:
    specs = list(eval_config.metrics_specs) or [config_pb2.MetricsSpec()]
    return stock._filter_and_separate_computations(
        metric_specs.to_computations(specs, eval_config=eval_config)
    )


def _combined(computation: Any) -> Combined:
    """Return the sums of one of TFMA's computations.

    Raises:
      UnsupportedMetric: its combiner needs more than labels and predictions.
    """
    combiner = computation.combiner
    values = vars(combiner)
    keys: Sequence[Any] = computation.keys
    key = keys[0]
    is_plain = not (
        key.sub_key
        or key.output_name
        or key.example_weighted
        or values.get("_aggregation_type")
        or values.get("_class_weights")
        or values.get("_example_id_key")
        or values.get(_EXTRACT, metric_util.to_label_prediction_example_weight)
        is not metric_util.to_label_prediction_example_weight
    )
    # Subclasses may have other results, so the types have to be these.
    match type(combiner):
        case example_count._ExampleCountCombiner if is_plain:
            return Combined(key.model_name, Count(), combiner)
        case _ if not is_plain or computation.preprocessors:
            pass
        case calibration._WeightedLabelsPredictionsExamplesCombiner:
            return Combined(key.model_name, Totals(), combiner)
        case calibration_histogram._CalibrationHistogramCombiner:
            histogram = Histogram(
                values["_num_buckets"],
                values["_left"],
                values["_range"],
                values["_prediction_based_bucketing"],
                values["_fractional_labels"],
            )
            return Combined(key.model_name, histogram, combiner)
        case binary_confusion_matrices._BinaryConfusionMatrixCombiner:
            inner = vars(values["_binary_confusion_matrices"])
            matrices = Matrices(tuple(inner["_thresholds"]), inner["_enable_fractional_labels"])
            return Combined(key.model_name, matrices, combiner)
    raise UnsupportedMetric(key.name)


def _tfma_accumulator(combiner: Any, sums: Sums, accumulator: Any) -> Any:
    """Convert an accumulator to the type that TFMA's combiner has."""
    if isinstance(sums, Totals):
        totals = combiner.create_accumulator()
        (
            totals.total_weighted_labels,
            totals.total_weighted_predictions,
            totals.total_weighted_examples,
        ) = accumulator.tolist()
        return totals
    if isinstance(sums, Histogram):
        assert isinstance(accumulator, Buckets)
        rows = zip(accumulator.ids.tolist(), *accumulator.sums.tolist(), strict=True)
        return {row[0]: calibration_histogram.Bucket(*row) for row in rows}
    if isinstance(sums, Matrices):
        columns = np.transpose(accumulator).tolist()
        return {
            threshold: aggregates._ThresholdEntry(aggregates.Matrix(*column), [], [], [], [])
            for threshold, column in zip(sums.thresholds, columns, strict=True)
        }
    return accumulator
