"""The files of an evaluation, in TFMA's public messages, which `tfma.load_eval_result` reads.

TFMA's own writers are Beam stages whose inputs are private types. Evaluations by earlier versions,
which TFMA wrote, have the same files; they lack plots, mistakes, and the predictions of a sample if
TFX's own executor evaluated.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_model_analysis as tfma
from google.protobuf import json_format
from tensorflow_model_analysis.proto import (
    config_pb2,
    metrics_for_slice_pb2,
    validation_result_pb2,
)
from tfx.dsl.io import fileio

from components.evaluator.metrics import (
    CALIBRATION_BINS,
    METRICS,
    Check,
    Confusion,
    Counts,
    Measured,
    checks,
    measure,
    ratio,
    thresholds,
)
from components.evaluator.settings import Evaluation
from core.files import without_magic
from preprocessing import features
from trainer_module.export import THRESHOLD

CANDIDATE, BASELINE = "candidate", "baseline"
"""The names of the evaluated model and of the model that it is compared with."""
SAMPLE_FILE = "sampled_predictions.json"
"""Digest of an Example -> prediction, for the Examples that the serving check tries first."""
MISTAKES_FILE = "mistakes.json"
"""The most confident mistakes: objects with `text`, `label` and `probability`."""
CONFIG_FILE = "eval_config.json"
_CONFUSION = "confusion_matrix_at_thresholds"

Slice = tuple[str, str]
"""A feature and its value; ("", "") is the slice of all reviews."""
WHOLE: Slice = ("", "")


class SliceResults(NamedTuple):
    """The results on one slice.

    Attributes:
      slice: a feature and its value, or WHOLE.
      models: CANDIDATE or BASELINE -> its results.
    """

    slice: Slice
    models: dict[str, Measured]


def eval_config(settings: Evaluation, has_baseline: bool) -> config_pb2.EvalConfig:
    """Return the configuration with which TFMA computes the same metrics."""
    model = {
        "signature_name": "serving_default",
        "prediction_key": "probability",
        "label_key": features.LABEL,
        "preprocessing_function_names": ["transform_features"],
    }
    models = [config_pb2.ModelSpec(name=CANDIDATE, **model)]
    if has_baseline:
        models.append(config_pb2.ModelSpec(name=BASELINE, is_baseline=True, **model))
    metrics = [config_pb2.MetricConfig(class_name=metric.tfma) for metric in METRICS]
    for metric, config in zip(METRICS, metrics, strict=True):
        threshold = config_pb2.MetricThreshold()
        least, least_change = thresholds(metric, settings.model_dump())
        if least is not None:
            threshold.MergeFrom(_threshold(False, least))
        if least_change is not None and has_baseline:
            threshold.MergeFrom(_threshold(True, least_change))
        if threshold.ListFields():
            # The thresholds apply only to the whole split, because a slice may be very small.
            config.per_slice_thresholds.add(
                slicing_specs=[config_pb2.SlicingSpec()], threshold=threshold
            )
    metrics.append(
        config_pb2.MetricConfig(
            class_name="ConfusionMatrixAtThresholds", config=f'"thresholds": [{THRESHOLD}]'
        )
    )
    slices = [config_pb2.SlicingSpec()]
    slices += [config_pb2.SlicingSpec(feature_keys=[key]) for key in settings.slices]
    return config_pb2.EvalConfig(
        model_specs=models,
        metrics_specs=[config_pb2.MetricsSpec(metrics=metrics)],
        slicing_specs=slices,
    )


def write(
    folder: str,
    counts: Mapping[Slice, Mapping[str, Counts]],
    settings: Evaluation,
    models: Mapping[str, str],
) -> list[Check]:
    """Write the metrics, their configuration and the validation; return the checks.

    Args:
      folder: of the ModelEvaluation.
      counts: slice -> CANDIDATE or BASELINE -> counts.
      settings: slices and thresholds.
      models: CANDIDATE and, if there is one, BASELINE -> folder of the model.
    """
    fileio.makedirs(folder)
    run = config_pb2.EvalRun(
        eval_config=eval_config(settings, BASELINE in models),
        version=tfma.version.VERSION,
        # TFMA has no name for the only model.
        model_locations=models if BASELINE in models else {"": models[CANDIDATE]},
    )
    with fileio.open(os.path.join(folder, CONFIG_FILE), "w") as file:
        file.write(json_format.MessageToJson(run))
    found = {
        of_slice: {name: measure(parts[name]) for name in models}
        for of_slice, parts in sorted(counts.items())
    }
    messages = [_metrics(of_slice, results) for of_slice, results in found.items()]
    whole = found[WHOLE]
    compared = checks(whole[CANDIDATE], whole.get(BASELINE), settings.model_dump())
    _write_records(folder, "metrics-00000-of-00001", messages)
    _write_records(folder, "plots-00000-of-00001", [_plots(counts[WHOLE])])
    _write_records(folder, "validations", [_validation(compared)])
    return compared


def read(evaluation: str) -> list[SliceResults]:
    """Return the results on all slices, that on all reviews first.

    Raises:
      ValueError: the evaluation has no results on all reviews.
    """
    found = []
    for message in tfma.load_metrics(without_magic(evaluation)):
        keys = message.slice_key.single_slice_keys
        models: dict[str, Measured] = {}
        for item in message.metric_keys_and_values:
            if item.key.is_diff:
                continue
            name = item.key.model_name or CANDIDATE
            model = models.setdefault(name, Measured({}, [[0, 0], [0, 0]]))
            if item.value.HasField("double_value"):
                model.values[item.key.name] = item.value.double_value.value
            elif item.key.name == _CONFUSION:
                [matrix] = item.value.confusion_matrix_at_thresholds.matrices
                models[name] = model._replace(confusion=confusion_of(matrix))
        found.append(SliceResults(_slice(keys[0]) if keys else WHOLE, models))
    found.sort(key=lambda each: each.slice != WHOLE)
    if not found or found[0].slice != WHOLE:
        raise ValueError(f"{evaluation}: no overall slice in the evaluation")
    return found


def read_checks(evaluation: str) -> list[Check]:
    """Return the checks that decided whether the candidate is blessed.

    Raises:
      ValueError: see `read`.
    """
    with fileio.open(os.path.join(evaluation, CONFIG_FILE)) as file:
        run = json_format.Parse(file.read(), config_pb2.EvalRun(), ignore_unknown_fields=True)
    rows = {metric.tfma: metric for metric in METRICS}
    limits: dict[str, float] = {}
    for spec in run.eval_config.metrics_specs:
        for metric in spec.metrics:
            for sliced in metric.per_slice_thresholds:
                row, threshold = rows[metric.class_name], sliced.threshold
                if threshold.HasField("value_threshold"):
                    limits[row.minimum] = threshold.value_threshold.lower_bound.value
                if threshold.HasField("change_threshold"):
                    limits[row.max_drop] = -threshold.change_threshold.absolute.value
    models = read(evaluation)[0].models
    return checks(models[CANDIDATE], models.get(BASELINE), limits)


def read_plots(evaluation: str) -> Any:
    """Return the `PlotData` of TFMA for the candidate on all reviews; None if there is none."""
    for of_slice in tfma.load_plots(without_magic(evaluation)):
        for item in of_slice.plot_keys_and_values:
            return item.value
    return None


def write_predictions(folder: str, sampled: Mapping[str, float], mistakes: Sequence[Any]) -> None:
    """Write the predictions of the candidate for a sample, and its most confident mistakes.

    Args:
      folder: of the ModelEvaluation.
      sampled: digest of an Example -> prediction.
      mistakes: objects with `text`, `label` and `probability`.
    """
    fileio.makedirs(folder)
    for name, content in ((SAMPLE_FILE, sampled), (MISTAKES_FILE, mistakes)):
        with fileio.open(os.path.join(folder, name), "w") as file:
            file.write(json.dumps(content))


def read_mistakes(evaluation: str) -> list[dict[str, Any]]:
    """Return the most confident mistakes of the candidate; [] if they are not stored."""
    return list(_read_json(evaluation, MISTAKES_FILE) or [])


def stored_predictions(evaluation: str, examples: Iterable[bytes]) -> dict[int, float]:
    """Return the index of an Example -> its prediction in the evaluation.

    An Example outside the stored sample is missing.
    """
    stored = _read_json(evaluation, SAMPLE_FILE) or {}
    digests = map(digest, examples)
    return {n: stored[found] for n, found in enumerate(digests) if found in stored}


def digest(example: bytes) -> str:
    """Return the key of an Example in the stored sample."""
    return hashlib.blake2b(example, digest_size=16).hexdigest()


def _read_json(folder: str, name: str) -> Any:
    path = os.path.join(folder, name)
    if not fileio.exists(path):
        return None
    with fileio.open(path) as file:
        return json.loads(file.read())


def _write_records(folder: str, name: str, messages: Iterable[Any]) -> None:
    with tf.io.TFRecordWriter(os.path.join(folder, f"{name}.tfrecord")) as writer:
        for message in messages:
            writer.write(message.SerializeToString())


def _metrics(
    of_slice: Slice, models: Mapping[str, Measured]
) -> metrics_for_slice_pb2.MetricsForSlice:
    message = metrics_for_slice_pb2.MetricsForSlice()
    if of_slice != WHOLE:
        feature, text = of_slice
        message.slice_key.single_slice_keys.add(column=feature, bytes_value=text.encode())

    def add(name: str, model: str, is_diff: bool = False) -> Any:
        item = message.metric_keys_and_values.add()
        item.key.name, item.key.is_diff = name, is_diff
        item.key.model_name = model if BASELINE in models else ""
        return item.value

    for model, found in models.items():
        for metric, value in found.values.items():
            add(metric, model).double_value.value = value
        matrices = add(_CONFUSION, model).confusion_matrix_at_thresholds.matrices
        matrices.append(_matrix(THRESHOLD, found.confusion))
    if BASELINE in models:
        for metric, value in models[CANDIDATE].values.items():
            difference = add(metric, CANDIDATE, is_diff=True)
            difference.double_value.value = value - models[BASELINE].values[metric]
    return message


def _plots(counts: Mapping[str, Counts]) -> metrics_for_slice_pb2.PlotsForSlice:
    message = metrics_for_slice_pb2.PlotsForSlice()
    item = message.plot_keys_and_values.add()
    item.key.model_name = CANDIDATE if BASELINE in counts else ""
    item.value.confusion_matrix_at_thresholds.matrices.extend(
        _matrix(threshold, confusion.tolist()) for threshold, confusion in counts[CANDIDATE].curve()
    )
    for lower, total, examples, positive in counts[CANDIDATE].calibration():
        bucket = item.value.calibration_histogram_buckets.buckets.add()
        bucket.lower_threshold_inclusive = lower
        bucket.upper_threshold_exclusive = lower + 1 / CALIBRATION_BINS
        bucket.num_weighted_examples.value = examples
        bucket.total_weighted_label.value = positive
        bucket.total_weighted_refined_prediction.value = total
    return message


def _matrix(threshold: float, confusion: Confusion) -> Any:
    (true_negative, false_positive), (false_negative, true_positive) = confusion
    return metrics_for_slice_pb2.ConfusionMatrixAtThresholds.ConfusionMatrixAtThreshold(
        threshold=threshold,
        true_negatives=true_negative,
        false_positives=false_positive,
        false_negatives=false_negative,
        true_positives=true_positive,
        precision=ratio(true_positive, true_positive + false_positive),
        recall=ratio(true_positive, true_positive + false_negative),
    )


def confusion_of(matrix: Any) -> list[list[int]]:
    """Return a confusion matrix of TFMA as reviews by label and predicted label."""
    return [
        [int(matrix.true_negatives), int(matrix.false_positives)],
        [int(matrix.false_negatives), int(matrix.true_positives)],
    ]


def _validation(compared: Iterable[Check]) -> validation_result_pb2.ValidationResult:
    message = validation_result_pb2.ValidationResult(validation_ok=True)
    message.validation_details.slicing_details.add(num_matching_slices=1).slicing_spec.SetInParent()
    failed = [check for check in compared if not check.passed]
    if failed:
        message.validation_ok = False
        of_slice = message.metric_validations_per_slice.add()
        of_slice.slice_key.SetInParent()
        for check in failed:
            failure = of_slice.failures.add()
            failure.metric_key.name, failure.metric_key.is_diff = check.metric.name, check.is_change
            failure.metric_value.double_value.value = check.value
            failure.metric_threshold.CopyFrom(_threshold(check.is_change, check.limit))
            failure.message = check.sentence
    return message


def _threshold(is_change: bool, limit: float) -> config_pb2.MetricThreshold:
    threshold = config_pb2.MetricThreshold()
    if is_change:
        threshold.change_threshold.direction = config_pb2.MetricDirection.HIGHER_IS_BETTER
        threshold.change_threshold.absolute.value = limit
    else:
        threshold.value_threshold.lower_bound.value = limit
    return threshold


def _slice(key: Any) -> Slice:
    return key.column, key.bytes_value.decode()
